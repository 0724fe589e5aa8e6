// What is under the pointer in a chart, as text.

const tooltip = document.getElementById("tooltip");

function showTooltip(_handler, event, _item, value) {
  tooltip.hidden = !value;
  if (!value) return;
  const facts = document.createElement("dl");
  for (const [term, text] of Object.entries(value)) {
    const [dt, dd] = ["dt", "dd"].map((name) => document.createElement(name));
    dt.textContent = term;
    dd.textContent = text;
    facts.append(dt, dd);
  }
  tooltip.replaceChildren(facts);
  const { width, height } = tooltip.getBoundingClientRect();
  const left = Math.min(event.clientX + 14, innerWidth - width - 8);
  const below = event.clientY + 16;
  const top = below + height > innerHeight ? event.clientY - height - 10 : below;
  tooltip.style.left = `${Math.max(left, 8)}px`;
  tooltip.style.top = `${Math.max(top, 8)}px`;
}
