// Which part of the recording is seen, and where: a lane of boxes for each depth of each row.
// Lengths are pixels of CSS.

const GUTTER = 176;
const AXIS = 26;
const HEADING = 28;
const LANE = 20;
const BOX = 18;
const ROW_GAP = 8;
const SHORTEST_VIEW = 20; // ns

const stage = byId("stage");
const layout = laidOut(data, records);
const state = {
  view: wholeView(),
  width: 1, // of the canvas: asking the page for it is slow
  height: 1,
  pointer: null, // where it is above the plot
  hovered: -1,
  selected: -1,
  found: null, // for each name, whether it holds what is searched; null without a search
};

function laidOut({ groups, rows }, { count, row, depth }) {
  const depths = new Array(rows.length).fill(0);
  for (let item = 0; item < count; item++) {
    depths[row[item]] = Math.max(depths[row[item]], depth[item]);
  }
  const headings = [];
  const lanes = [];
  const firstLanes = [];
  let y = AXIS;
  groups.forEach((group, groupIndex) => {
    headings.push({ ...group, y, isEmpty: !rows.some((each) => each.group === groupIndex) });
    y += HEADING;
    rows.forEach((each, index) => {
      if (each.group !== groupIndex) return;
      firstLanes[index] = lanes.length;
      for (let level = 0; level <= depths[index]; level++, y += LANE) lanes.push({ y, items: [] });
      y += ROW_GAP;
    });
  });
  const laneOf = (item) => lanes[firstLanes[row[item]] + depth[item]];
  for (let item = 0; item < count; item++) laneOf(item).items.push(item);
  return { headings, lanes, firstLanes, laneOf, height: y };
}

function wholeView() {
  const margin = Math.max((data.last - data.first) * 0.01, SHORTEST_VIEW / 2);
  return { left: data.first - margin, right: data.last + margin };
}

const plotWidth = () => Math.max(state.width - GUTTER, 1);
const spanOf = ({ left, right }) => right - left;
const perPixel = () => spanOf(state.view) / plotWidth();
const xOf = (time) => GUTTER + (time - state.view.left) / perPixel();
const timeAt = (x) => state.view.left + (x - GUTTER) * perPixel();

function show(left, span) {
  const whole = wholeView();
  const kept = possibleSpan(span);
  const from = Math.min(Math.max(left, whole.left), whole.right - kept);
  state.view = { left: from, right: from + kept };
  redraw();
}

function possibleSpan(span) {
  return Math.min(Math.max(span, SHORTEST_VIEW), spanOf(wholeView()));
}

function zoom(factor, x = GUTTER + plotWidth() / 2) {
  const span = possibleSpan(spanOf(state.view) * factor);
  show(timeAt(x) - (x - GUTTER) * (span / plotWidth()), span);
}

const pan = (pixels) => show(state.view.left + pixels * perPixel(), spanOf(state.view));
const fitAll = () => show(-Infinity, Infinity);

function reveal(item) {
  const isWide = durationOf(item) / perPixel() >= 3;
  const span = isWide ? spanOf(state.view) : Math.max(durationOf(item) * 30, 1000);
  show((records.start[item] + records.end[item] - span) / 2, span);
  const { y } = layout.laneOf(item);
  const isInSight = y >= stage.scrollTop + AXIS && y + LANE <= stage.scrollTop + state.height;
  if (!isInSight) stage.scrollTop = y - state.height / 2;
}

// The place in a lane of the first record that ends no earlier than a time.
function placeAt(items, time) {
  let [low, high] = [0, items.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (records.end[items[middle]] < time) low = middle + 1;
    else high = middle;
  }
  return low;
}

function itemAt({ x, y }) {
  const below = y + stage.scrollTop;
  const lane = layout.lanes.find((each) => below >= each.y && below < each.y + LANE);
  if (!lane || x < GUTTER || y < AXIS) return -1;
  const [time, reach] = [timeAt(x), 3 * perPixel()];
  const distance = (item) => Math.max(records.start[item] - time, time - records.end[item], 0);
  let nearest = -1;
  for (let place = placeAt(lane.items, time - reach); place < lane.items.length; place++) {
    const item = lane.items[place];
    if (records.start[item] > time + reach) break;
    if (nearest < 0 || distance(item) < distance(nearest)) nearest = item;
  }
  return nearest;
}
