// The minimap of a session: shows the viewport, jumps on click and with the arrow keys, names what is under the pointer.
const HEIGHT = 1000; // of the drawing, in its own units

let minimap = document.querySelector(".minimap");
let jump = null;
let range = null; // returns the positions of the first and the last message in the viewport

export function setUpMinimap(jumpTo, visibleRange) {
  jump = jumpTo;
  range = visibleRange;
  prepare();
}

// Replaces the minimap with a newer one.
export async function updateMinimap(url) {
  if (!minimap) return;
  const response = await fetch(url);
  if (!response.ok) return;
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  const added = page.querySelector(".minimap");
  if (!added) return;
  const next = document.importNode(added, true);
  minimap.replaceWith(next);
  minimap = next;
  prepare();
}

// Moves the frame of the viewport.
export function followMinimap() {
  const shown = minimap && range();
  if (!shown) return;
  const total = Number(minimap.dataset.total);
  const [first, last] = shown;
  const frame = minimap.querySelector(".view");
  frame.setAttribute("y", first / total * HEIGHT);
  frame.setAttribute("height", Math.max(last - first + 1, 1) / total * HEIGHT);
  const current = links().findLast((link) => start(link) <= first);
  const before = minimap.querySelector("[aria-current]");
  if (!current || current === before) return;
  before?.removeAttribute("aria-current");
  current.setAttribute("aria-current", "true");
  if (!minimap.contains(document.activeElement)) moveTabStop(current);
}

function links() {
  return [...minimap.querySelectorAll("a")];
}

function start(link) {
  return Number(link.dataset.from);
}

// Only one link is reached with the Tab key; the arrow keys lead to the others.
function moveTabStop(link) {
  for (const other of minimap.querySelectorAll('a[tabindex="0"]')) other.setAttribute("tabindex", "-1");
  link.setAttribute("tabindex", "0");
}

function prepare() {
  if (!minimap) return;
  const card = document.createElement("p");
  card.className = "minimap-card";
  card.hidden = true;
  card.setAttribute("aria-hidden", "true"); // the names of the links say the same
  minimap.append(card);
  for (const link of links()) {
    const title = link.querySelector("title");
    link.setAttribute("aria-label", title.textContent);
    title.remove(); // the card replaces the browser's tooltip
  }
  minimap.addEventListener("click", onClick);
  minimap.addEventListener("keydown", onKeyDown);
  for (const type of ["pointermove", "focusin"]) minimap.addEventListener(type, (event) => show(card, event.target.closest?.("a")));
  for (const type of ["pointerleave", "focusout"]) minimap.addEventListener(type, () => { card.hidden = true; });
  followMinimap();
}

function onClick(event) {
  const link = event.target.closest("a");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  event.preventDefault();
  jump(Number(link.dataset.position), link.getAttribute("href"));
}

function onKeyDown(event) {
  const all = links();
  const index = all.indexOf(document.activeElement);
  const steps = { ArrowDown: index + 1, ArrowUp: index - 1, PageDown: index + 10, PageUp: index - 10, Home: 0, End: all.length - 1 };
  if (index < 0 || !(event.key in steps)) return;
  event.preventDefault();
  const link = all[Math.min(Math.max(steps[event.key], 0), all.length - 1)];
  moveTabStop(link);
  link.focus({ preventScroll: true });
}

function show(card, link) {
  card.hidden = !link;
  if (!link) return;
  const [place, ...facts] = link.getAttribute("aria-label").split(" · ");
  const name = document.createElement("b");
  name.textContent = place;
  card.replaceChildren(name, ...facts.map((fact) => {
    const line = document.createElement("span");
    line.textContent = fact;
    return line;
  }));
  const prompt = document.querySelector(`.outline [data-position="${link.dataset.position}"]`);
  if (prompt) {
    const words = document.createElement("q");
    words.textContent = prompt.textContent;
    card.append(words);
  }
  const frame = minimap.getBoundingClientRect();
  const row = link.getBoundingClientRect();
  const top = row.top + row.height / 2 - frame.top - card.offsetHeight / 2;
  card.style.top = `${Math.min(Math.max(top, 0), frame.height - card.offsetHeight)}px`;
}
