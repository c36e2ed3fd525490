// The session list: keyboard, and folded filters on small screens.
import { moveFocus, onKey } from "./keys.js";
import { onChange, refresher, replaceParts } from "./live.js";

const links = () => [...document.querySelectorAll(".row-link")];
onKey("j", () => moveFocus(links(), 1));
onKey("k", () => moveFocus(links(), -1));

const fold = document.querySelector(".filters-fold");
const isSmall = matchMedia("(max-width: 56rem)");
const adapt = () => { fold.open = !isSmall.matches; };
if (fold) {
  adapt();
  isSmall.addEventListener("change", adapt);
}

// The fields in which the user types stay as they are.
function showList(page) {
  const label = (more) => more.parentElement.querySelector("h2").textContent;
  const open = [...document.querySelectorAll(".filter-boxes .more[open]")].map(label);
  replaceParts(page, [".list", ".filters-fold > summary", ".filter-boxes", ".dates .kept", ".presets"]);
  for (const more of document.querySelectorAll(".filter-boxes .more")) more.open = open.includes(label(more));
}

onChange(refresher((page) => {
  if (document.querySelector(".empty") && !page.querySelector(".empty")) location.reload();
  showList(page);
  replaceParts(page, [".recent", ".notices"]);
}));

// The list follows the words of the title as they are typed.
const titleForm = document.querySelector(".filter.title");
let titleTimer = 0;
let titleController = new AbortController();
async function showTitles() {
  titleController.abort();
  titleController = new AbortController();
  const query = new URLSearchParams([...new FormData(titleForm)].filter(([, value]) => value));
  const url = query.size ? `/sessions?${query}` : "/sessions";
  try {
    const response = await fetch(url, { signal: titleController.signal });
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    history.replaceState(null, "", url);
    showList(page);
  } catch { /* aborted by the next key, or the server has ended */ }
}
titleForm?.addEventListener("input", () => {
  clearTimeout(titleTimer);
  titleTimer = setTimeout(showTitles, 120);
});

// The figures of a large archive take a moment. Their links change them in place.
const segments = () => [...document.querySelectorAll("#figures :is(.segments a, select)")];
let figuresController = new AbortController();
async function loadFigures(url) {
  figuresController.abort();
  figuresController = new AbortController();
  const { signal } = figuresController;
  const figures = document.getElementById("figures");
  figures.setAttribute("aria-busy", "true");
  try {
    const response = await fetch(url, { signal });
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    if (signal.aborted) return;
    const index = segments().indexOf(document.activeElement);
    figures.replaceWith(document.importNode(page.getElementById("figures"), true));
    document.querySelector(".figure-filters button")?.remove();
    showLatestDays();
    segments()[index]?.focus({ preventScroll: true });
  } catch {
    if (!signal.aborted) figures.removeAttribute("aria-busy"); // the server has ended
  }
}
document.querySelector(".figure-filters button")?.remove(); // a choice applies at once
const figures = document.getElementById("figures");
if (figures?.dataset.load) {
  figures.firstElementChild.textContent = "Counting …";
  loadFigures(figures.dataset.load);
}
document.addEventListener("click", (event) => {
  const link = event.target.closest("#figures .segments a");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  const url = new URL(link.href);
  history.replaceState(null, "", url.pathname + url.search);
  loadFigures(`/figures${url.search}`);
});
document.addEventListener("change", (event) => {
  const select = event.target.closest("#figures select");
  if (!select) return;
  const query = new URLSearchParams(location.search);
  if (select.value) query.set(select.name, select.value);
  else query.delete(select.name);
  history.replaceState(null, "", query.size ? `/?${query}` : "/");
  loadFigures(`/figures?${query}`);
});
// Figures of a live session: at most every 10 s, and at most a twentieth of the time is spent on them.
const FIGURES_MS = 10_000;
let figuresTimer = 0;
let figuresDelay = FIGURES_MS;
async function updateFigures() {
  figuresTimer = 0;
  const figures = document.getElementById("figures");
  if (figures.matches(":hover, :focus-within")) { scheduleFigures(); return; } // numbers of a chart are shown
  const start = performance.now();
  const open = [...figures.querySelectorAll("details")].map((one) => one.open);
  await loadFigures(`/figures${location.search}`);
  document.querySelectorAll("#figures details").forEach((one, index) => { one.open = open[index] ?? one.open; });
  figuresDelay = Math.max(FIGURES_MS, 20 * (performance.now() - start));
}
function scheduleFigures() {
  figuresTimer ||= setTimeout(updateFigures, figuresDelay);
}
onChange((change, isSyncEnd) => {
  if (!document.getElementById("figures")) return;
  if (isSyncEnd) loadFigures(`/figures${location.search}`);
  else scheduleFigures();
});

// The calendar of a narrow screen starts at its end.
function showLatestDays() {
  for (const element of document.querySelectorAll(".scroll.end")) element.scrollLeft = element.scrollWidth;
}
showLatestDays();
