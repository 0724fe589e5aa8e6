// What the pointer and the keys do.

function select(item) {
  state.selected = item;
  describe(byId("details"), item);
  redraw();
}

function hover(point) {
  state.pointer = point && point.x >= GUTTER ? point : null;
  state.hovered = point ? itemAt(point) : -1;
  const tooltip = byId("tooltip");
  describe(tooltip, state.hovered);
  if (state.hovered >= 0) placeBeside(tooltip, point.clientX, point.clientY);
  redraw();
}

function placeBeside(element, x, y) {
  const { width, height } = element.getBoundingClientRect();
  const left = x + 14 + width > innerWidth ? x - 14 - width : x + 14;
  const top = y + 16 + height > innerHeight ? y - 12 - height : y + 16;
  element.style.left = `${Math.max(left, 4)}px`;
  element.style.top = `${Math.max(top, 4)}px`;
}

function pointOf({ clientX, clientY }) {
  const { left, top } = canvas.getBoundingClientRect();
  return { x: clientX - left, y: clientY - top, clientX, clientY };
}

function listenToPointer() {
  let drag = null;
  canvas.addEventListener("pointerdown", (event) => {
    if (event.button) return;
    canvas.setPointerCapture(event.pointerId);
    drag = { x: event.clientX, y: event.clientY, moved: false };
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!drag) {
      hover(pointOf(event));
      return;
    }
    const [dx, dy] = [event.clientX - drag.x, event.clientY - drag.y];
    if (!drag.moved && Math.hypot(dx, dy) < 4) return;
    Object.assign(drag, { x: event.clientX, y: event.clientY, moved: true });
    canvas.classList.add("dragged");
    hover(null);
    stage.scrollTop -= dy;
    pan(-dx);
  });
  canvas.addEventListener("pointerup", (event) => {
    if (drag && !drag.moved) select(itemAt(pointOf(event)));
  });
  canvas.addEventListener("lostpointercapture", () => {
    drag = null;
    canvas.classList.remove("dragged");
  });
  canvas.addEventListener("pointerleave", () => hover(null));
  canvas.addEventListener("dblclick", fitAll);
}

function turnWheel(event) {
  const point = pointOf(event);
  if (point.x < GUTTER) return; // above the labels it scrolls
  event.preventDefault();
  const pixels = event.deltaMode ? 16 : 1;
  const { deltaX, deltaY, shiftKey, ctrlKey } = event;
  if (shiftKey || Math.abs(deltaX) > Math.abs(deltaY)) pan((deltaX || deltaY) * pixels);
  else zoom(Math.exp(deltaY * pixels * (ctrlKey ? 0.01 : 0.002)), point.x); // ctrl: a pinch
  hover(point);
}

function pressKey(event) {
  if (event.key === "Escape") select(-1);
  if (event.target.matches("input") || event.ctrlKey || event.metaKey || event.altKey) return;
  const step = plotWidth() / 8;
  const actions = {
    ArrowLeft: () => pan(-step),
    ArrowRight: () => pan(step),
    ArrowUp: () => stage.scrollBy(0, -2 * LANE),
    ArrowDown: () => stage.scrollBy(0, 2 * LANE),
    a: () => pan(-step),
    d: () => pan(step),
    w: () => zoom(1 / 1.4),
    s: () => zoom(1.4),
    "+": () => zoom(1 / 1.4),
    "-": () => zoom(1.4),
    Home: fitAll,
  };
  const action = actions[event.key.length === 1 ? event.key.toLowerCase() : event.key];
  if (!action) return;
  event.preventDefault();
  hover(null);
  action();
}

function resize() {
  canvas.style.height = `${stage.clientHeight}px`;
  byId("spacer").style.height = `${Math.max(layout.height - stage.clientHeight, 0)}px`;
  state.width = stage.clientWidth;
  state.height = stage.clientHeight;
  canvas.width = state.width * devicePixelRatio;
  canvas.height = state.height * devicePixelRatio;
  redraw();
}

function paint() {
  readTheme();
  drawLegend();
  redraw();
}

function start() {
  for (const id of ["help", "tools", "stage"]) byId(id).hidden = false;
  paint();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", paint);
  new ResizeObserver(() => requestAnimationFrame(resize)).observe(stage);
  listenToPointer();
  canvas.addEventListener("wheel", turnWheel, { passive: false });
  stage.addEventListener("scroll", redraw);
  addEventListener("keydown", pressKey);
  byId("fit").addEventListener("click", fitAll);
  byId("search").addEventListener("input", search);
  byId("search").addEventListener("keydown", (event) => event.key === "Enter" && selectNextFound());
}

start();
