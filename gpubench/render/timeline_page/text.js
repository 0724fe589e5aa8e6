// What there is to say of a record, in words.

function unitOf(ns) {
  const units = [["s", 1e9], ["ms", 1e6], ["us", 1e3], ["ns", 1]];
  return units.find(([, size]) => Math.abs(ns) >= size) ?? units.at(-1);
}

// Three digits, rounded before the unit is chosen.
function period(ns) {
  const rounded = Number(ns.toPrecision(3));
  const [symbol, size] = unitOf(rounded);
  return `${size === 1 ? rounded : (rounded / size).toPrecision(3)} ${symbol}`;
}

// To the nanosecond.
function moment(ns) {
  const [symbol, size] = unitOf(ns);
  return `${(ns / size).toFixed(Math.log10(size))} ${symbol}`;
}

function sizeText(bytes) {
  const units = [["GB", 1e9], ["MB", 1e6], ["kB", 1e3]];
  const unit = units.find(([, size]) => bytes >= size);
  return unit ? `${(bytes / unit[1]).toPrecision(4)} ${unit[0]}` : `${bytes} B`;
}

const counted = (count) => count.toLocaleString("en");

function placeText(item) {
  const { label, group } = data.rows[records.row[item]];
  return `${label}, ${data.groups[group].label}`;
}

// Returns pairs of a term and what it is.
function facts(item) {
  const kind = kindOf(item);
  const timing = isMark(item) ? [] : [["duration", period(durationOf(item))]];
  return [
    [kind, placeText(item)],
    ["start", moment(records.start[item])],
    ...timing,
    ...ownFacts(item, kind),
  ];
}

function ownFacts(item, kind) {
  const detail = records.detail[item];
  switch (kind) {
    case "kernel":
    case "memcpy":
    case "memset":
      return [...activityFacts(item, kind, data.configurations[detail]), ...launchFacts(item)];
    case "runtime":
    case "driver":
      return callFacts(item, detail);
    case "range":
      return [["domain", data.names[detail]]];
    default:
      return [["source", data.names[detail]]];
  }
}

function activityFacts(item, kind, configuration) {
  const [graph, bytes, from, to, isAsync, ...launch] = configuration;
  const own = kind === "kernel" ? kernelFacts(launch) : memoryFacts(item, bytes, from, to);
  if (kind === "memcpy") own.push(["call", isAsync ? "asynchronous" : "synchronous"]);
  return graph ? [...own, ["graph", `${graph}`]] : own;
}

function kernelFacts([gridX, gridY, gridZ, blockX, blockY, blockZ, registers, sharedBytes]) {
  return [
    ["grid", `${gridX} × ${gridY} × ${gridZ}`],
    ["block", `${blockX} × ${blockY} × ${blockZ}`],
    ["registers", `${registers} a thread`],
    ["shared memory", `${counted(sharedBytes)} B a block`],
  ];
}

function memoryFacts(item, bytes, from, to) {
  const speed = durationOf(item) ? `, ${(bytes / durationOf(item)).toPrecision(3)} GB/s` : "";
  const kinds = [from, to].filter(Boolean).map((index) => data.memoryKinds[index]);
  const memory = kinds.length ? [["memory", kinds.join(" → ")]] : [];
  return [["size", sizeText(bytes) + speed], ...memory];
}

function launchFacts(item) {
  const call = records.call[item];
  if (call < 0) return [];
  const thread = data.rows[records.row[call]].label;
  const ahead = period(records.start[item] - records.start[call]);
  return [["launched by", `${nameOf(call)} on ${thread}, ${ahead} earlier`]];
}

function callFacts(item, status) {
  const launched = launches.get(item) ?? [];
  const { length } = launched;
  const text = length === 1 ? nameOf(launched[0]) : `${counted(length)} activities`;
  return [
    ...(length ? [["launched", text]] : []),
    ...(status ? [["status", `error ${status}`]] : []),
  ];
}

function describe(element, item) {
  element.hidden = item < 0;
  if (item < 0) return;
  const name = document.createElement("p");
  name.className = "name";
  name.textContent = nameOf(item);
  const list = document.createElement("dl");
  for (const [term, text] of facts(item)) {
    const pair = document.createElement("div");
    pair.append(node("dt", term), node("dd", text));
    list.append(pair);
  }
  element.replaceChildren(name, list);
}

function node(tag, text) {
  const element = document.createElement(tag);
  element.textContent = text;
  return element;
}
