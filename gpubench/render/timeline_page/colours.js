// Colours: of the page, and of each name.

const KINDS = {
  kernel: { plural: "kernels", hues: [195, 325] },
  memcpy: { plural: "copies", hues: [55, 85] },
  memset: { plural: "sets", hues: [98, 110] },
  runtime: { plural: "runtime calls", hues: [240, 240], paleness: 0.2 },
  driver: { plural: "driver calls", hues: [200, 200], paleness: 0.3 },
  range: { plural: "ranges", hues: [135, 168] },
  compilation: { plural: "compilations", hues: [12, 32] },
};

let theme = null;

function readTheme() {
  const style = getComputedStyle(document.documentElement);
  const value = (name) => style.getPropertyValue(`--${name}`).trim();
  theme = {
    paper: value("paper"),
    band: value("band"),
    line: value("line"),
    ink: value("ink"),
    quiet: value("quiet"),
    accent: value("accent"),
    boxInk: value("box-ink"),
    lightness: Number(value("lightness")),
    chroma: Number(value("chroma")),
    fills: new Map(),
  };
}

// The kind decides on the region of the colour circle, the name on the place in it.
function colour(kind, name) {
  const { hues, paleness = 1 } = KINDS[kind];
  const place = hash(name);
  const hue = hues[0] + (hues[1] - hues[0]) * ((place % 997) / 996);
  const lightness = theme.lightness + 0.05 * ((place % 13) / 12 - 0.5);
  return `oklch(${lightness.toFixed(3)} ${theme.chroma * paleness} ${hue.toFixed(1)})`;
}

function fill(item) {
  const key = records.name[item] * data.kinds.length + records.kind[item];
  const { fills } = theme;
  if (!fills.has(key)) fills.set(key, colour(kindOf(item), nameOf(item)));
  return fills.get(key);
}

function hash(text) {
  let value = 2166136261;
  for (let place = 0; place < text.length; place++) {
    value = Math.imul(value ^ text.charCodeAt(place), 16777619) >>> 0;
  }
  return value;
}

const isFound = (item) => state.found === null || state.found[records.name[item]];
const opacity = (item) => (isFound(item) ? 1 : 0.16);

function drawLegend() {
  const counts = new Array(data.kinds.length).fill(0);
  for (let item = 0; item < records.count; item++) counts[records.kind[item]]++;
  const entries = data.kinds.flatMap((kind, index) => {
    if (!counts[index]) return [];
    const entry = node("li", `${KINDS[kind].plural} ${counted(counts[index])}`);
    const swatch = document.createElement("i");
    swatch.style.background = swatchColours(kind);
    entry.prepend(swatch);
    return [entry];
  });
  byId("legend").replaceChildren(...entries);
}

function swatchColours(kind) {
  const { hues, paleness = 1 } = KINDS[kind];
  const { lightness, chroma } = theme;
  const ends = hues.map((hue) => `oklch(${lightness} ${chroma * paleness} ${hue})`);
  return `linear-gradient(90deg, ${ends.join(", ")})`;
}
