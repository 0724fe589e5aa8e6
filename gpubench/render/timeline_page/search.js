// Finding records by name.

function search() {
  const query = byId("search").value.trim().toLowerCase();
  state.found = query ? data.names.map((name) => name.toLowerCase().includes(query)) : null;
  byId("matches").textContent = query ? matchText() : "";
  redraw();
}

function matchText() {
  let [count, total] = [0, 0];
  for (let item = 0; item < records.count; item++) {
    if (!isFound(item)) continue;
    count++;
    total += durationOf(item);
  }
  return count ? `${counted(count)} found, ${period(total)} in all` : "none found";
}

// The next one to begin after the one that is selected; after the last one the first.
function selectNextFound() {
  const isBefore = (item, other) =>
    (records.start[item] - records.start[other] || item - other) < 0;
  let [first, next] = [-1, -1];
  for (let item = 0; item < records.count; item++) {
    if (!isFound(item)) continue;
    if (first < 0 || isBefore(item, first)) first = item;
    const isLater = state.selected >= 0 && isBefore(state.selected, item);
    if (isLater && (next < 0 || isBefore(item, next))) next = item;
  }
  const item = next < 0 ? first : next;
  if (item < 0) return;
  select(item);
  reveal(item);
}
