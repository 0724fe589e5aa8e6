// Charts as specifications of Vega-Lite. Colours are the style sheet's, so that light, dark and
// print apply to what is drawn already.

const COLOURS = [1, 2, 3, 4, 5, 6, 7, 8].map((number) => `var(--series-${number})`);

const CONFIG = {
  background: null,
  font: "system-ui, -apple-system, 'Segoe UI', 'Liberation Sans', sans-serif",
  view: { stroke: null },
  axis: {
    labelColor: "var(--quiet)", titleColor: "var(--quiet)", gridColor: "var(--line)",
    domainColor: "var(--axis)", tickColor: "var(--axis)", labelFontSize: 11, titleFontSize: 11,
    titleFontWeight: "normal", titlePadding: 8, tickSize: 4, labelOverlap: true, labelSeparation: 6,
  },
  legend: {
    orient: "top", direction: "horizontal", title: null, labelColor: "var(--ink)",
    labelFontSize: 11, labelLimit: 260, symbolStrokeWidth: 2, columns: 3,
  },
  range: { category: COLOURS },
  mark: { color: COLOURS[0] },
};

const MOST_PLACES = 8; // that an axis names all of

const NOTED = {
  anchor: "end", color: "var(--warning)", fontSize: 11, fontWeight: "normal", offset: 4,
};

const chart = (description, rest) => ({
  $schema: "https://vega.github.io/schema/vega-lite/v6.json",
  description,
  width: "container",
  height: 220,
  autosize: { type: "fit-x", contains: "padding" },
  config: CONFIG,
  ...rest,
});

const quantity = (field, title, rest = {}) => ({ field, title, type: "quantitative", ...rest });

const byRun = (runs) => ({
  field: "run", type: "nominal", sort: null, scale: { domain: runs },
  legend: runs.length > 1 ? {} : null,
});

const tips = (...pairs) =>
  pairs.map(([field, title]) => ({ field, title, type: "nominal" }));

const short = (value) => String(Number(value.toPrecision(4)));
