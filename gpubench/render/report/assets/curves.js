// A figure against a parameter.

const isPower = (value) => value >= 1 && Number.isInteger(Math.log2(value));

// Round numbers with a suffix (10k), other whole ones in full (1,024).
function placeFormat(places) {
  if (places.every((place) => Number(place.toPrecision(2)) === place)) return "~s";
  return places.every(Number.isInteger) ? ",d" : "~g";
}

// Powers of ten; where there are few, two and five times them too.
function decades(points) {
  const low = Math.floor(Math.log10(Math.min(...points.map((point) => point.low))));
  const high = Math.ceil(Math.log10(Math.max(...points.map((point) => point.high))));
  const steps = high - low > 3 ? [1] : [1, 2, 5];
  return Array.from({ length: high - low + 1 }, (_, k) => low + k)
    .flatMap((exponent) => steps.map((step) => step * 10 ** exponent));
}

const CURVE_HEIGHT = 260;

function curveSpec({ title, x, y, logX, logY, points }) {
  const values = points.map((point) => ({
    ...point, at: short(point.x), text: `${short(point.y)} [${short(point.low)}, ${short(point.high)}]`,
  }));
  const lines = [...new Set(points.map(({ line }) => line))];
  const base = points.every((point) => isPower(point.x)) ? 2 : 10;
  const places = [...new Set(points.map((point) => point.x))];
  const axisX = { grid: false, format: placeFormat(places), tickCount: 8 };
  if (logX || places.length <= MOST_PLACES) axisX.values = places;
  const along = quantity("x", x, {
    scale: logX ? { type: "log", base, nice: false } : { zero: false },
    axis: axisX,
  });
  const scale = logY ? { type: "log" } : { zero: true };
  const axis = logY ? { values: decades(points), format: "~g" } : { tickCount: 6 };
  const hue = { field: "line", type: "nominal", sort: null, scale: { domain: lines } };
  const color = { ...hue, legend: lines.length > 1 ? {} : null };
  const tooltip = tips(...(lines.length > 1 ? [["line", "line"]] : []), ["at", x], ["text", y]);
  return chart(title, {
    height: CURVE_HEIGHT,
    data: { values },
    encoding: { x: along, color },
    layer: [
      {
        mark: { type: "rule", strokeWidth: 1.5 },
        encoding: { y: quantity("low", y, { scale, axis }), y2: { field: "high" } },
      },
      ...["low", "high"].map((end) => ({
        mark: { type: "tick", orient: "horizontal", thickness: 1.5, size: 7 },
        encoding: { y: quantity(end, y) },
      })),
      { mark: { type: "line", strokeWidth: 1.75 }, encoding: { y: quantity("y", y) } },
      {
        mark: { type: "point", filled: true, size: 48, opacity: 1 },
        encoding: { y: quantity("y", y), shape: { ...hue, legend: color.legend }, tooltip },
      },
    ],
  });
}
