// Search as you type: fetches the results page and replaces its results, then the counts of the filters.
import { moveFocus, onKey } from "./keys.js";

const TYPING_MS = 60;
const PATTERN_TYPING_MS = 300; // a pattern can be searched in the whole history
const COUNTS_MS = 150; // counts wait until the user pauses
const form = document.querySelector(".big-search");
const input = form.elements.q;
const filter = form.elements.filter; // of a search for text; a search for words has its filters in the query
let controller = new AbortController();
let timer = 0;
let countsTimer = 0;
let shown = address(false);

input.setSelectionRange(input.value.length, input.value.length);
form.querySelector("button").hidden = true;

function address(isTyping) {
  const query = new URLSearchParams();
  if (input.value) query.set("q", input.value);
  if (form.elements.mode.value !== "words") query.set("mode", form.elements.mode.value);
  if (filter.value) query.set("filter", filter.value);
  if (isTyping) query.set("typing", "1");
  const text = query.toString();
  return text ? `/search?${text}` : "/search";
}

// Punctuation without a word is searched as text.
const isPattern = () => form.elements.mode.value !== "words" || !/[\p{L}\p{N}]/u.test(input.value);

const part = (page, id) => page.getElementById(id);
async function fetchPage(url, signal) {
  const response = await fetch(url, { signal });
  return new DOMParser().parseFromString(await response.text(), "text/html");
}

// While the user types, the address changes in place. A filter is a new entry of the browser's history.
async function update(isTyping, isNew = false) {
  if (address(false) === shown && isTyping) return;
  controller.abort();
  controller = new AbortController();
  const { signal } = controller;
  clearTimeout(countsTimer);
  shown = address(false);
  if (isNew) history.pushState(null, "", shown);
  else history.replaceState(null, "", shown);
  part(document, "results").setAttribute("aria-busy", "true");
  try {
    const page = await fetchPage(address(isTyping), signal);
    if (signal.aborted) return;
    if (!part(page, "results")) { showFailure(); return; }
    part(document, "results").replaceWith(part(page, "results"));
    part(document, "syntax").replaceWith(part(page, "syntax"));
    document.title = page.title;
    showCounts(part(page, "facets"), COUNTS_MS);
  } catch (error) {
    if (error.name !== "AbortError") showFailure();
  }
}

// The results of an earlier query would mislead.
function showFailure() {
  const text = document.createElement("p");
  text.className = "none";
  text.textContent = "The server did not answer this query. Shorten it, or check that 'backscroll serve' still runs.";
  part(document, "results").replaceChildren(text);
  part(document, "results").removeAttribute("aria-busy");
}

// Counts that are not part of the page are loaded; until then, the previous ones stay.
function showCounts(facets, delay) {
  if (!facets.dataset.load) {
    replaceCounts(facets);
    return;
  }
  part(document, "facets").setAttribute("aria-busy", "true");
  countsTimer = setTimeout(loadCounts, delay, facets.dataset.load, controller.signal);
}

async function loadCounts(url, signal) {
  try {
    const page = await fetchPage(url, signal);
    if (!signal.aborted && part(page, "facets")) replaceCounts(part(page, "facets"));
  } catch { /* the next query loads its own */ }
}

function replaceCounts(facets) {
  const before = part(document, "facets");
  const label = document.activeElement?.closest("#facets a")?.title;
  before.replaceWith(facets);
  fold();
  if (label) [...facets.querySelectorAll("a")].find((link) => link.title === label)?.focus({ preventScroll: true });
}

const isSmall = matchMedia("(max-width: 56rem)");
function fold() {
  const details = document.querySelector("#facets .filters-fold");
  if (details) details.open = !isSmall.matches;
}
isSmall.addEventListener("change", fold);
fold();
const facets = part(document, "facets");
if (facets.dataset.load) {
  facets.firstElementChild.textContent = "Counting …";
  showCounts(facets, 0);
}

input.addEventListener("input", () => {
  clearTimeout(timer);
  timer = setTimeout(update, isPattern() ? PATTERN_TYPING_MS : TYPING_MS, true);
});
form.addEventListener("change", (event) => {
  if (event.target === input) return;
  if (form.elements.mode.value === "words") {
    input.value = [input.value, filter.value].filter(Boolean).join(" ");
    filter.value = "";
  }
  update(false);
});
form.addEventListener("submit", (event) => {
  event.preventDefault();
  clearTimeout(timer);
  update(false);
  input.blur();
});

// A filter changes the query in place.
document.addEventListener("click", (event) => {
  const link = event.target.closest("#facets a, #results .active a");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
  event.preventDefault();
  // A link in an SVG has no plain href.
  const query = new URL(link.getAttribute("href"), location.href).searchParams;
  input.value = query.get("q") ?? "";
  filter.value = query.get("filter") ?? "";
  update(false, true);
});
addEventListener("popstate", () => {
  const query = new URLSearchParams(location.search);
  input.value = query.get("q") ?? "";
  filter.value = query.get("filter") ?? "";
  form.elements.mode.value = query.get("mode") ?? "words";
  update(false);
});

const links = () => [...document.querySelectorAll("#results .row-link")];
input.addEventListener("keydown", (event) => {
  if (event.key === "ArrowDown") {
    event.preventDefault();
    links()[0]?.focus();
  }
});
document.addEventListener("keydown", (event) => {
  const index = links().indexOf(document.activeElement);
  if (event.defaultPrevented || index < 0 || (event.key !== "ArrowDown" && event.key !== "ArrowUp")) return;
  event.preventDefault();
  if (index === 0 && event.key === "ArrowUp") input.focus();
  else moveFocus(links(), event.key === "ArrowDown" ? 1 : -1);
});
onKey("j", () => moveFocus(links(), 1));
onKey("k", () => moveFocus(links(), -1));
