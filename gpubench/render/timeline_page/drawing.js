// The picture. It is drawn anew, once before the browser shows it, whenever something changes.

const FONT = '11.5px system-ui, -apple-system, "Segoe UI", "Liberation Sans", sans-serif';
const MOST_ARROWS = 500;

const canvas = byId("canvas");
const context = canvas.getContext("2d");
let frame = 0;

function redraw() {
  frame ||= requestAnimationFrame(() => {
    frame = 0;
    draw();
  });
}

function draw() {
  const { width, height } = state;
  context.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, 0, 0);
  context.clearRect(0, 0, width, height);
  context.font = FONT;
  context.textBaseline = "middle";
  const ticks = axisTicks();
  drawGrid(ticks, height);
  context.save();
  context.translate(0, -stage.scrollTop);
  drawHeadings(width);
  drawRowLabels();
  clip(GUTTER, stage.scrollTop, width - GUTTER, height);
  visibleLanes(height).forEach(drawLane);
  drawOutlines();
  drawArrows();
  context.restore();
  drawAxis(ticks, width);
  drawPointer(height);
}

function clip(x, y, width, height) {
  context.beginPath();
  context.rect(x, y, width, height);
  context.clip();
}

const visibleLanes = (height) =>
  layout.lanes.filter(({ y }) => y + LANE > stage.scrollTop && y < stage.scrollTop + height);

function drawGrid({ times }, height) {
  context.fillStyle = theme.line;
  for (const time of times) context.fillRect(Math.round(xOf(time)), AXIS, 1, height);
}

function drawLane({ y, items }) {
  const pixel = perPixel();
  for (let place = placeAt(items, state.view.left); place < items.length; ) {
    const item = items[place];
    if (records.start[item] > state.view.right) break;
    if (durationOf(item) < pixel) place = drawThin(items, place, y, pixel);
    else {
      drawBox(item, y);
      place++;
    }
  }
}

// Records that take less than a pixel and begin in the same one are drawn as one column, the
// paler the less of the pixel they fill. Returns the place after them.
function drawThin(items, first, y, pixel) {
  const column = Math.floor(xOf(records.start[items[first]]));
  const columnEnd = timeAt(column + 1);
  let shown = items[first];
  let covered = 0;
  let hasMark = false;
  let place = first;
  for (; place < items.length; place++) {
    const item = items[place];
    const duration = durationOf(item);
    if (duration >= pixel || (records.start[item] >= columnEnd && place > first)) break;
    covered += duration;
    hasMark ||= isMark(item);
    if (comesBefore(item, shown)) shown = item;
  }
  context.globalAlpha = opacity(shown) * (hasMark ? 1 : 0.4 + 0.6 * Math.min(covered / pixel, 1));
  context.fillStyle = fill(shown);
  context.fillRect(column, y, hasMark ? 2 : 1, BOX);
  if (hasMark) drawMark(shown, column, y, place < items.length ? items[place] : -1);
  context.globalAlpha = 1;
  return place;
}

// What is searched comes first, then what takes longest.
function comesBefore(item, other) {
  const isMoreFound = Number(isFound(item)) - Number(isFound(other));
  return (isMoreFound || durationOf(item) - durationOf(other)) > 0;
}

function drawMark(item, x, y, next) {
  context.beginPath();
  context.moveTo(x, y);
  context.lineTo(x + 7, y + 3.5);
  context.lineTo(x, y + 7);
  context.fill();
  const end = next < 0 ? state.width : xOf(records.start[next]);
  drawLabel(item, x + 5, y, end - x - 5);
}

function drawBox(item, y) {
  const [x, width] = visiblePart(item);
  context.globalAlpha = opacity(item);
  context.fillStyle = fill(item);
  context.beginPath();
  context.roundRect(x, y, Math.max(width - (width > 3 ? 0.6 : 0), 1), BOX, Math.min(3, width / 4));
  context.fill();
  drawLabel(item, Math.max(x, GUTTER), y, x + width - Math.max(x, GUTTER));
  context.globalAlpha = 1;
}

// A box may reach far beyond the canvas, which browsers draw badly: cut it just outside.
function visiblePart(item) {
  const left = Math.max(xOf(records.start[item]), GUTTER - 10);
  const right = Math.min(xOf(records.end[item]), state.width + 10);
  return [left, right - left];
}

function drawLabel(item, x, y, width) {
  if (width < 26) return;
  const name = records.name[item];
  const room = Math.min(width, state.width - x) - 10;
  const isBare = kindOf(item) === "kernel" && context.measureText(labels[name]).width > room;
  const text = fitted(isBare ? bareLabels[name] : labels[name], room);
  context.fillStyle = isMark(item) ? theme.ink : theme.boxInk;
  context.fillText(text, x + 5, y + BOX / 2 + 0.5);
}

function fitted(text, room) {
  const width = context.measureText(text).width;
  if (width <= room) return text;
  const count = Math.floor((text.length * room) / width) - 1;
  return count > 1 ? `${text.slice(0, count)}…` : "";
}

function drawOutlines() {
  outline(state.hovered, theme.quiet);
  outline(state.selected, theme.ink);
}

function outline(item, colour) {
  if (item < 0) return;
  const [x, width] = visiblePart(item);
  context.strokeStyle = colour;
  context.lineWidth = 1.5;
  context.strokeRect(x - 0.75, layout.laneOf(item).y - 0.75, Math.max(width, 1) + 1.5, BOX + 1.5);
}

function drawArrows() {
  context.strokeStyle = context.fillStyle = theme.accent;
  for (const [item, alpha] of [[state.hovered, 0.45], [state.selected, 1]]) {
    context.globalAlpha = alpha;
    for (const [call, activity] of arrowsOf(item)) drawArrow(call, activity);
  }
  context.globalAlpha = 1;
}

function arrowsOf(item) {
  if (item < 0) return [];
  if (records.call[item] >= 0) return [[records.call[item], item]];
  return (launches.get(item) ?? []).slice(0, MOST_ARROWS).map((activity) => [item, activity]);
}

function drawArrow(call, activity) {
  const [x0, y0] = [xOf(records.start[call]), layout.laneOf(call).y + BOX];
  const [x1, y1] = [xOf(records.start[activity]), layout.laneOf(activity).y - 1];
  const bend = Math.max(Math.abs(y1 - y0) * 0.45, 12);
  context.lineWidth = 1.4;
  context.beginPath();
  context.moveTo(x0, y0);
  context.bezierCurveTo(x0, y0 + bend, x1, y1 - bend, x1, y1 - 4);
  context.stroke();
  context.beginPath();
  context.moveTo(x1, y1);
  context.lineTo(x1 - 3.5, y1 - 7);
  context.lineTo(x1 + 3.5, y1 - 7);
  context.fill();
}

function drawHeadings(width) {
  for (const { label, share, isEmpty, y } of layout.headings) {
    context.fillStyle = theme.band;
    context.fillRect(0, y, width, HEADING - 6);
    context.fillStyle = theme.ink;
    context.font = `600 ${FONT}`;
    context.fillText(label, 12, y + 11.5);
    const x = 12 + context.measureText(label).width + 12;
    context.font = FONT;
    context.fillStyle = theme.quiet;
    const busy = share === null ? "" : `busy ${(100 * share).toFixed(1)}%  `;
    context.fillText(busy + (isEmpty ? "no records" : ""), x, y + 11.5);
  }
}

function drawRowLabels() {
  context.fillStyle = theme.ink;
  data.rows.forEach(({ label }, row) => {
    const { y } = layout.lanes[layout.firstLanes[row]];
    context.fillText(fitted(label, GUTTER - 32), 20, y + BOX / 2 + 0.5);
  });
}
