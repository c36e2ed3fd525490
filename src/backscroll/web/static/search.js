// Search as you type: fetches the results page and replaces its results.
import { moveFocus, onKey } from "./keys.js";

const form = document.querySelector(".big-search");
const input = form.elements.q;
let results = document.getElementById("results");
let controller = new AbortController();
let timer = 0;
let shown = address(false);

input.setSelectionRange(input.value.length, input.value.length);
form.querySelector("button").hidden = true;

function address(isTyping) {
  const query = new URLSearchParams();
  if (input.value) query.set("q", input.value);
  if (form.elements.mode.value !== "words") query.set("mode", form.elements.mode.value);
  if (isTyping) query.set("typing", "1");
  const text = query.toString();
  return text ? `/search?${text}` : "/search";
}

async function update(isTyping) {
  if (address(false) === shown && isTyping) return;
  controller.abort();
  controller = new AbortController();
  const { signal } = controller;
  shown = address(false);
  history.replaceState(null, "", shown);
  results.setAttribute("aria-busy", "true");
  try {
    const response = await fetch(address(isTyping), { signal });
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    const found = page.getElementById("results");
    if (signal.aborted || !found) return;
    results.replaceWith(found);
    results = found;
    document.title = page.title;
  } catch (error) {
    if (error.name !== "AbortError") results.removeAttribute("aria-busy");
  }
}

input.addEventListener("input", () => {
  clearTimeout(timer);
  timer = setTimeout(update, 60, true);
});
form.addEventListener("change", (event) => { if (event.target !== input) update(false); });
form.addEventListener("submit", (event) => {
  event.preventDefault();
  clearTimeout(timer);
  update(false);
  input.blur();
});
input.addEventListener("keydown", (event) => {
  if (event.key === "ArrowDown") {
    event.preventDefault();
    links()[0]?.focus();
  }
});

const links = () => [...document.querySelectorAll("#results .row-link")];
onKey("j", () => moveFocus(links(), 1));
onKey("k", () => moveFocus(links(), -1));
