// What is shown of the table: benchmarks that hold all words, with the values that were chosen.

const tools = document.getElementById("tools");
const find = document.getElementById("find");
const selects = [...tools.querySelectorAll("select")];
const texts = new Map(bodies.map((body) => [body, body.rows[0].textContent.toLowerCase()]));

function filter() {
  const words = find.value.toLowerCase().split(/\s+/).filter(Boolean);
  const wanted = selects.filter((select) => select.value);
  let count = 0;
  for (const body of bodies) {
    const isShown =
      words.every((word) => texts.get(body).includes(word)) &&
      wanted.every(({ value, dataset }) => body.dataset[dataset.filter].split("|").includes(value));
    body.hidden = !isShown;
    count += isShown;
  }
  document.getElementById("count").textContent =
    count === bodies.length ? `${count} benchmarks` : `${count} of ${bodies.length} benchmarks`;
  document.getElementById("none").hidden = count > 0;
}

tools.hidden = false;
tools.addEventListener("input", filter);
tools.addEventListener("submit", (event) => event.preventDefault());
filter();
