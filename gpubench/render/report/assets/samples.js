// The samples of one benchmark: how they are distributed, and how they came.

const sizeOf = ({ n, y }) => n ?? y.length;

function medianRules({ runs, medians, unit }) {
  return {
    data: {
      values: medians.map((x, k) => ({ x, run: runs[k], text: `${short(x)} ${unit}` })),
    },
    mark: { type: "rule", strokeDash: [5, 3], strokeWidth: 1.5 },
    encoding: {
      x: quantity("x"), color: byRun(runs), tooltip: tips(["run", "run"], ["text", "median"]),
    },
  };
}

function histogramSpec(data) {
  const { clock, unit, runs, order, histogram: { start, width, counts, beyond } } = data;
  const edge = (bin) => start + bin * width;
  const values = counts.flatMap((column, k) => column.map((count, bin) => {
    const y = (100 * count) / sizeOf(order[k]);
    return {
      x: edge(bin), x2: edge(bin + 1), y, run: runs[k],
      range: `${short(edge(bin))} to ${short(edge(bin + 1))} ${unit}`, share: `${short(y)} %`,
    };
  }));
  const n = beyond.reduce((sum, count) => sum + count, 0);
  const tail = n ? `; ${n} longer ${n === 1 ? "sample" : "samples"} not shown` : "";
  return chart(`Histogram of ${clock} times`, {
    layer: [
      {
        data: { values },
        mark: { type: "bar", binSpacing: 1, opacity: runs.length > 1 ? 0.5 : 0.75 },
        encoding: {
          x: quantity("x", `${clock} time (${unit})${tail}`, {
            bin: "binned", scale: { zero: false, nice: false }, axis: { grid: false, tickCount: 8 },
          }),
          x2: { field: "x2" },
          y: quantity("y", "samples (%)", { stack: null, axis: { tickCount: 5 } }),
          color: byRun(runs),
          tooltip: tips(["run", "run"], ["range", "time"], ["share", "share"]),
        },
      },
      medianRules(data),
    ],
  });
}

function distributionSpec(data) {
  const { clock, unit, runs, order } = data;
  const values = order.flatMap((samples, k) => {
    const n = sizeOf(samples);
    const ordered = samples.quantiles ?? samples.y.toSorted((a, b) => a - b);
    const rank = (place) => Math.round((place * (n - 1)) / Math.max(ordered.length - 1, 1));
    return ordered.map((x, place) => {
      const y = (100 * (rank(place) + 1)) / n;
      return { x, y, run: runs[k], time: `${short(x)} ${unit}`, share: `${short(y)} %` };
    });
  });
  return chart(`Distribution of ${clock} times`, {
    layer: [
      {
        data: { values },
        mark: { type: "line", interpolate: "step-after", strokeWidth: 2 },
        encoding: {
          x: quantity("x", `${clock} time (${unit})`, {
            scale: { zero: false }, axis: { tickCount: 8 },
          }),
          y: quantity("y", "samples up to it (%)", {
            scale: { domain: [0, 100] }, axis: { tickCount: 5 },
          }),
          color: byRun(runs),
          tooltip: tips(["run", "run"], ["time", "time"], ["share", "samples up to it"]),
        },
      },
      medianRules(data),
    ],
  });
}

function orderSpec(data) {
  const { clock, unit, runs, order, blocks, marks, notes } = data;
  const values = order.flatMap((samples, k) => samples.y.map((y, place) => {
    const x = Math.floor((place * sizeOf(samples)) / samples.y.length);
    return {
      x, y, low: samples.low?.[place], high: samples.high?.[place], run: runs[k],
      sample: String(x), time: `${short(y)} ${unit}`,
    };
  }));
  const gathered = order.some(({ low }) => low);
  const starts = [...new Set(blocks.flat())].map((x) => ({ x: x - 0.5 }));
  const codes = [...new Set(notes.flat())].join(", ");
  const axisX = { grid: false, tickMinStep: 1, format: "d" };
  const n = Math.max(...order.map(sizeOf));
  if (n <= MOST_PLACES) axisX.values = Array.from({ length: n }, (_, k) => k); // no halves between
  const x = quantity("x", "sample, in run order", {
    scale: { nice: false, zero: false }, axis: axisX,
  });
  const y = quantity("y", `${clock} time (${unit})`, { scale: { zero: false }, axis: { tickCount: 6 } });
  const color = byRun(runs);
  const tooltip = tips(["run", "run"], ["sample", "sample"], ["time", gathered ? "median" : "time"]);
  const band = {
    mark: { type: "area", opacity: 0.25 },
    encoding: { x, y: { ...y, field: "low" }, y2: { field: "high" }, color },
  };
  const line = {
    mark: gathered
      ? { type: "line", strokeWidth: 1.5, point: { opacity: 0, size: 60 } }
      : { type: "point", filled: true, size: 18, opacity: 0.75 },
    encoding: { x, y, color, tooltip },
  };
  return chart(`${clock} times in run order${codes ? `, noted: ${codes}` : ""}`, {
    title: codes ? { text: `noted: ${codes}`, ...NOTED } : undefined,
    layer: [
      ...(starts.length ? [blockRules(starts)] : []),
      ...marks.flatMap((each, k) => stretchLayers(each, runs.length > 1 ? ` (${runs[k]})` : "", k)),
      { data: { values }, layer: gathered ? [band, line] : [line] },
    ],
  });
}

const blockRules = (values) => ({
  data: { values },
  mark: { type: "rule", color: "var(--axis)", strokeDash: [2, 3] },
  encoding: { x: quantity("x") },
});

// Where a note's reason can be seen.
function stretchLayers(marks, suffix, k) {
  const values = marks.map((mark) => ({ ...mark, label: mark.code + suffix }));
  const mark = { color: "var(--warning)", opacity: 0.9 };
  const ends = {
    x: quantity("from"), x2: { field: "to" }, y: quantity("low"), y2: { field: "high" },
  };
  const layers = [
    {
      data: { values: values.filter(({ low, high, from, to }) => low !== high && from !== to) },
      mark: { type: "rect", color: "var(--warning)", opacity: 0.16 },
      encoding: ends,
    },
    {
      data: { values: values.filter(({ low, high, from, to }) => low === high || from === to) },
      mark: { ...mark, type: "rule", strokeWidth: 2 },
      encoding: ends,
    },
    ...[true, false].map((isBand) => ({
      data: { values: values.filter(({ low, high }) => isBand === (low !== high)) },
      mark: {
        ...mark, type: "text", align: "left", baseline: isBand ? "top" : "bottom", dx: 3,
        dy: (isBand ? 1 : -1) * (3 + 13 * k), fontSize: 11,
      },
      encoding: {
        x: quantity("from"), y: quantity(isBand ? "low" : "high"), text: { field: "label" },
      },
    })),
  ];
  return layers.filter(({ data }) => data.values.length);
}
