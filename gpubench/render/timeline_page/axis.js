// Where the ticks are, and what they say.

function axisTicks() {
  const { left, right } = state.view;
  const step = roundStep(120 * perPixel());
  const base = labelBase(left, right, step);
  const [symbol, size] = unitOf(Math.max(Math.abs(left - base), Math.abs(right - base)));
  const digits = Math.max(0, Math.ceil(Math.log10(size / step)));
  const times = [];
  for (let time = Math.ceil(left / step) * step; time <= right; time += step) times.push(time);
  const sign = base ? "+" : "";
  const text = (time) => `${sign}${((time - base) / size).toFixed(digits)} ${symbol}`;
  return { times, text, base };
}

// Labels that would need many digits count from a round time before the view.
function labelBase(left, right, step) {
  if (Math.max(Math.abs(left), Math.abs(right)) / step < 1e5) return 0;
  const round = 10 ** Math.ceil(Math.log10(right - left));
  return Math.floor(left / round) * round;
}

function roundStep(least) {
  const power = 10 ** Math.floor(Math.log10(Math.max(least, 1)));
  return power * [1, 2, 5, 10].find((factor) => factor * power >= least);
}

function drawAxis({ times, text, base }, width) {
  context.fillStyle = theme.paper;
  context.fillRect(0, 0, width, AXIS);
  context.fillStyle = theme.line;
  context.fillRect(0, AXIS - 1, width, 1);
  context.fillStyle = theme.quiet;
  if (base) context.fillText(moment(base), 12, AXIS / 2);
  for (const time of times) {
    const x = Math.round(xOf(time));
    if (x < GUTTER) continue;
    context.fillRect(x, AXIS - 7, 1, 6);
    if (x + context.measureText(text(time)).width + 8 > width) continue;
    context.fillText(text(time), x + 4, AXIS / 2);
  }
}

function drawPointer(height) {
  if (!state.pointer) return;
  const { x } = state.pointer;
  context.globalAlpha = 0.5;
  context.fillStyle = theme.accent;
  context.fillRect(Math.round(x), 0, 1, height);
  context.globalAlpha = 1;
  const text = moment(Math.round(timeAt(x)));
  const width = context.measureText(text).width + 10;
  const left = Math.min(x, state.width - width);
  context.fillRect(left, 3, width, AXIS - 8);
  context.fillStyle = theme.paper;
  context.fillText(text, left + 5, AXIS / 2 - 0.5);
}
