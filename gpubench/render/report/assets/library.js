// The library for charts, run when the first one is drawn: a page can be read without any.

const runLibrary = () => {
  const script = document.createElement("script");
  script.textContent = document.getElementById("library").textContent;
  document.head.append(script);
};

// Draws a specification of Vega-Lite in an element. Expressions are interpreted, never compiled,
// and nothing in a file of results becomes one: names and figures are data, titles are strings.
async function draw(target, specification) {
  if (!window.vegaEmbed) runLibrary();
  target.finalize?.();
  const drawn = await window.vegaEmbed(target, specification, {
    ast: true,
    actions: false,
    defaultStyle: false,
    hover: false,
    renderer: "svg",
    tooltip: showTooltip,
  });
  target.finalize = () => drawn.finalize();
  return drawn.view;
}
