// The table of benchmarks: its heads sort it.

const table = document.getElementById("table");
const bodies = [...table.tBodies];
const collator = new Intl.Collator("en", { numeric: true });

const cellOf = (body, column) => body.rows[0].cells[column];

// Orders two bodies by a column; those without a value come last in either direction.
function comparison(column, isNumber, sign) {
  const value = isNumber
    ? (body) => Number(cellOf(body, column).dataset.sort ?? NaN)
    : (body) => cellOf(body, column).textContent;
  const lacks = isNumber ? Number.isNaN : (text) => !text;
  const compare = isNumber ? (a, b) => a - b || 0 : collator.compare;
  const values = new Map(bodies.map((body) => [body, value(body)]));
  return (one, other) => {
    const [a, b] = [values.get(one), values.get(other)];
    return lacks(a) - lacks(b) || (lacks(a) ? 0 : sign * compare(a, b));
  };
}

function sortBy(head) {
  const next = { ascending: "descending", descending: null }[head.ariaSort];
  const order = next === undefined ? "ascending" : next;
  for (const each of table.tHead.rows[0].cells) each.removeAttribute("aria-sort");
  if (order) head.ariaSort = order;
  const sign = order === "descending" ? -1 : 1;
  const isNumber = head.classList.contains("number");
  const sorted = order ? bodies.toSorted(comparison(head.cellIndex, isNumber, sign)) : bodies;
  table.append(...sorted);
}

for (const head of table.tHead.rows[0].cells) {
  const button = document.createElement("button");
  button.type = "button";
  button.title = "Sort";
  button.append(...head.childNodes);
  button.addEventListener("click", () => sortBy(head));
  head.append(button);
}
