// Charts where the page has a place for them, drawn when they can be seen.

const KINDS = { intervals: intervalsSpec, curve: curveSpec };
const AROUND = 70; // pixels that axes and a legend take

const dataIn = (place) => JSON.parse(place.querySelector("script").textContent);

function add(parent, name, properties = {}) {
  const element = Object.assign(document.createElement(name), properties);
  parent.append(element);
  return element;
}

// A group of radio buttons, which the keyboard knows how to use. Calls back with the chosen place.
function choice(parent, legend, texts, choose) {
  const group = add(parent, "fieldset");
  add(group, "legend", { textContent: legend });
  const name = `choice-${choice.count = (choice.count ?? 0) + 1}`;
  texts.forEach((text, place) => {
    const label = add(group, "label");
    const input = add(label, "input", { type: "radio", name, checked: place === 0 });
    add(label, "span", { textContent: text });
    input.addEventListener("change", () => choose(place));
  });
}

// The charts of one benchmark: how its samples are distributed, and how they came.
function drawBenchmark(place) {
  const clocks = dataIn(place);
  let clock = 0, shape = 0;
  const tools = add(place, "div", { className: "choices" });
  const [left, right] = [0, 1].map(() => add(place, "div", { className: "chart" }));
  const drawShape = () => draw(left, [histogramSpec, distributionSpec][shape](clocks[clock]));
  const drawAll = () => Promise.all([drawShape(), draw(right, orderSpec(clocks[clock]))]);
  if (clocks.length > 1) {
    choice(tools, "Times of", clocks.map((each) => each.clock), (chosen) => {
      clock = chosen;
      drawAll();
    });
  }
  choice(tools, "Shown as", ["histogram", "distribution"], (chosen) => {
    shape = chosen;
    drawShape();
  });
  return drawAll();
}

// Draws what is in an element, once.
async function drawWithin(element) {
  for (const place of element.querySelectorAll(".charts:not(.drawn)")) {
    place.classList.add("drawn");
    await drawBenchmark(place);
  }
}

const observer = new IntersectionObserver((entries) => {
  for (const { isIntersecting, target } of entries) {
    if (!isIntersecting) continue;
    observer.unobserve(target);
    drawFigure(target);
  }
}, { rootMargin: "300px" });

function drawFigure(place) {
  if (place.classList.contains("drawn")) return;
  place.classList.add("drawn");
  const data = dataIn(place);
  const target = add(place, "div");
  draw(target, KINDS[data.kind](data, place.clientWidth));
}

const figures = document.querySelectorAll("figure .chart");
for (const place of figures) {
  const { rows } = dataIn(place);
  const height = rows ? intervalsHeight(rows) : CURVE_HEIGHT;
  place.style.minHeight = `${height + AROUND}px`; // so that nothing moves when it is drawn
  observer.observe(place);
}
addEventListener("beforeprint", () => figures.forEach(drawFigure));
