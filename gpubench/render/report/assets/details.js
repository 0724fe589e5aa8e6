// The details of a benchmark, opened by its name.

const close = document.getElementById("close");

function setOpen(body, isOpen) {
  body.classList.toggle("open", isOpen);
  body.querySelector(".line button").ariaExpanded = String(isOpen);
  body.querySelector("details").open = true;
  close.hidden = !table.querySelector("tbody.open");
  return isOpen ? drawWithin(body) : undefined;
}

for (const body of bodies) {
  const head = cellOf(body, 0);
  const button = document.createElement("button");
  button.type = "button";
  button.ariaExpanded = "false";
  button.append(...head.childNodes);
  button.addEventListener("click", () => setOpen(body, !body.classList.contains("open")));
  head.append(button);
}

close.addEventListener("click", () => {
  for (const body of table.querySelectorAll("tbody.open")) setOpen(body, false);
  find.focus();
});

function openAddressed() {
  const body = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!bodies.includes(body)) return;
  setOpen(body, true);
  body.scrollIntoView();
}

document.documentElement.classList.add("scripted");
addEventListener("hashchange", openAddressed);
openAddressed();
