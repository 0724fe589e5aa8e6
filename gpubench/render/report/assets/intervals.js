// All intervals of a comparison, against the margin.

const VERDICTS = ["slower", "faster", "same", "unclear"];

const intervalsHeight = (rows) => 20 * rows.length;

function intervalsSpec({ title, margin, rows }, width) {
  const values = rows.map((row) => ({
    ...row,
    text: `${row.ratio.toFixed(3)} [${row.low.toFixed(3)}, ${row.high.toFixed(3)}]`,
  }));
  const names = rows.map(({ label }) => label);
  const y = {
    field: "label", type: "nominal", sort: null, title: null, scale: { domain: names },
    axis: { labelLimit: Math.min(460, width * 0.5), domain: false, ticks: false, labelColor: "var(--ink)" },
  };
  const ends = [1 / (1 + margin), 1 + margin];
  const scale = {
    type: "log", nice: false,
    domain: [
      Math.min(ends[0], ...rows.map(({ low }) => low)) * 0.995,
      Math.max(ends[1], ...rows.map(({ high }) => high)) * 1.005,
    ],
  };
  const color = {
    field: "verdict", type: "nominal", legend: null,
    scale: { domain: VERDICTS, range: VERDICTS.map((each) => `var(--${each})`) },
  };
  const tooltip = tips(["name", "benchmark"], ["text", "ratio"], ["verdict", "verdict"]);
  const axis = { tickCount: 6, format: ".3~g" };
  return chart(title, {
    height: intervalsHeight(rows),
    layer: [
      {
        data: { values: [{ low: ends[0], high: ends[1] }] },
        mark: { type: "rect", color: "var(--same)", opacity: 0.16 },
        encoding: { x: quantity("low", title, { scale, axis }), x2: { field: "high" } },
      },
      {
        data: { values: [{ one: 1 }] },
        mark: { type: "rule", color: "var(--axis)" },
        encoding: { x: quantity("one", title) },
      },
      {
        data: { values },
        mark: { type: "rule", strokeWidth: 2.5 },
        encoding: { x: quantity("low", title), x2: { field: "high" }, y, color, tooltip },
      },
      {
        data: { values },
        mark: { type: "point", filled: true, size: 55, opacity: 1 },
        encoding: { x: quantity("ratio", title), y, color, tooltip },
      },
    ],
  });
}
