// The recording that the page holds as JSON. A record, or item, is a place in its columns. Times
// are nanoseconds from the beginning of the recording.

const byId = (id) => document.getElementById(id);
const data = JSON.parse(byId("recording").textContent);
const records = decoded(data);
const launches = activitiesByCall(records);
const labels = data.names.map((name) => name.slice(0, 300).replace(/\s+/g, " "));
const bareLabels = labels.map(bareName);

function decoded({ rows, records: { kind, name, start: steps, duration, depth, detail, call } }) {
  const start = new Float64Array(steps.length);
  const end = new Float64Array(steps.length);
  const row = new Uint32Array(steps.length);
  let item = 0;
  rows.forEach(({ count }, index) => {
    for (let time = 0, last = item + count; item < last; item++) {
      time += steps[item];
      start[item] = time;
      end[item] = time + duration[item];
      row[item] = index;
    }
  });
  return { count: item, kind, name, start, end, depth, detail, call, row };
}

function activitiesByCall({ count, call }) {
  const activities = new Map();
  for (let item = 0; item < count; item++) {
    if (call[item] < 0) continue;
    if (!activities.has(call[item])) activities.set(call[item], []);
    activities.get(call[item]).push(item);
  }
  return activities;
}

const kindOf = (item) => data.kinds[records.kind[item]];
const nameOf = (item) => data.names[records.name[item]];
const durationOf = (item) => records.end[item] - records.start[item];
const isMark = (item) => durationOf(item) === 0 && kindOf(item) === "range";

// The function's own name, without what C++ puts around it.
function bareName(name) {
  const head = name.replaceAll("(anonymous namespace)::", "").replace(/[<(].*$/, "").trim();
  return head.split(/::| /).at(-1) || name;
}
