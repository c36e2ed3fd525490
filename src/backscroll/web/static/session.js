// A session: loads more messages while scrolling, folds, finds, copies.
import { onKey } from "./keys.js";
import { onChange } from "./live.js";

const transcript = document.querySelector(".transcript");
const windows = transcript.querySelector(".windows");
const MAX_WINDOWS = 9; // with content; others keep their height only
const keepsAnchor = CSS.supports("overflow-anchor: auto");
const everything = transcript.dataset.all ? "&all=1" : "";
const originals = new WeakMap(); // windows as the server sent them
let isExpanded = false;

// --- more messages --------------------------------------------------------------------------------------

const observer = new IntersectionObserver((entries) => {
  for (const entry of entries) if (entry.isIntersecting) more(entry.target);
}, { rootMargin: "1800px 0px" });

function watch(element) {
  if (element) observer.observe(element);
}

async function more(link) {
  if (link.dataset.isLoading) return;
  link.dataset.isLoading = "1";
  const isEarlier = link.classList.contains("earlier");
  const all = [...windows.querySelectorAll(".window")];
  if (link.classList.contains("window")) return refill(link);
  const edge = isEarlier ? all[0].dataset.from : all.at(-1).dataset.to;
  const added = await load(isEarlier ? `before=${edge}` : `from=${edge}`);
  if (!added) { delete link.dataset.isLoading; return; }
  const height = document.documentElement.scrollHeight;
  if (isEarlier) {
    all[0].before(added);
    if (!keepsAnchor) scrollBy(0, document.documentElement.scrollHeight - height);
  } else {
    all.at(-1).after(added);
  }
  prepare(added);
  const isLast = isEarlier ? added.dataset.from === "0" : added.dataset.to === added.dataset.total;
  observer.unobserve(link);
  if (isLast) link.remove();
  else {
    delete link.dataset.isLoading;
    observer.observe(link); // fires again if it is still in view
  }
  release();
}

async function load(query) {
  try {
    const response = await fetch(`${transcript.dataset.url}/window?${query}${everything}`);
    if (!response.ok) return null;
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    return document.importNode(page.querySelector(".window"), true);
  } catch {
    return null;
  }
}

// Empties the windows that are far away. They keep their height, and are filled again when they come near.
function release() {
  const filled = [...windows.querySelectorAll(".window:not([data-empty])")];
  const distance = (element) => {
    const box = element.getBoundingClientRect();
    return Math.max(box.top - innerHeight, -box.bottom, 0);
  };
  filled.sort((one, other) => distance(one) - distance(other));
  for (const far of filled.slice(MAX_WINDOWS)) {
    if (distance(far) < 6000) continue;
    far.style.height = `${far.offsetHeight}px`;
    far.dataset.empty = "1";
    far.replaceChildren();
    observer.observe(far);
  }
}

async function refill(empty) {
  observer.unobserve(empty);
  const added = await load(`from=${empty.dataset.from}`);
  delete empty.dataset.isLoading;
  if (!added) { observer.observe(empty); return; }
  empty.replaceWith(added);
  prepare(added);
  release();
}

watch(windows.querySelector(".earlier"));
watch(windows.querySelector(".later"));

// --- folding --------------------------------------------------------------------------------------------

const expand = document.getElementById("expand");
expand.hidden = false;

function toggleAll() {
  isExpanded = !isExpanded;
  expand.textContent = isExpanded ? "Collapse all" : "Expand all";
  for (const fold of windows.querySelectorAll(".window details")) fold.open = isExpanded;
}

expand.addEventListener("click", toggleAll);
onKey("e", toggleAll);

windows.addEventListener("toggle", async (event) => {
  const link = event.target.open && event.target.querySelector(":scope > .nested > [data-src]");
  if (!link) return;
  const source = link.dataset.src;
  link.removeAttribute("data-src");
  const response = await fetch(`${source}/window?from=0`);
  if (!response.ok) return;
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  const part = document.importNode(page.querySelector(".window"), true);
  for (const element of part.querySelectorAll("[id]")) element.removeAttribute("id");
  link.after(...part.children);
}, true);

// Opens everything around the message that the address names.
function reveal() {
  const target = location.hash && document.getElementById(location.hash.slice(1));
  if (!target) return;
  for (let element = target; element; element = element.parentElement) {
    if (element.tagName === "DETAILS") element.open = true;
  }
  target.scrollIntoView({ block: "start" });
}

addEventListener("hashchange", reveal);
reveal();

// --- prompts --------------------------------------------------------------------------------------------

const outline = document.querySelector(".outline");
const pending = outline.querySelector("[data-load]");
if (pending && getComputedStyle(outline).display !== "none") {
  fetch(pending.dataset.load).then((response) => response.text()).then((text) => {
    const page = new DOMParser().parseFromString(text, "text/html");
    pending.replaceWith(document.importNode(page.querySelector(".prompts"), true));
    follow();
  }).catch(() => {});
}

// A prompt that is loaded is reached without a new page.
outline.addEventListener("click", (event) => {
  const link = event.target.closest("[data-position]");
  const target = link && document.getElementById(`m${link.dataset.position}`);
  if (!target || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  history.pushState(null, "", link.getAttribute("href"));
  target.scrollIntoView({ block: "start" });
});

let isScheduled = false;
function follow() {
  if (isScheduled) return;
  isScheduled = true;
  requestAnimationFrame(() => {
    isScheduled = false;
    let current = null;
    for (const prompt of windows.querySelectorAll(".window > article.user")) {
      if (prompt.getBoundingClientRect().top > 280) break;
      current = prompt.id.slice(1);
    }
    if (current === null) return;
    const link = outline.querySelector(`[data-position="${current}"]`);
    const before = outline.querySelector("[aria-current]");
    if (!link || link === before) return;
    before?.removeAttribute("aria-current");
    link.setAttribute("aria-current", "true");
    const box = link.getBoundingClientRect(), frame = outline.getBoundingClientRect();
    if (box.top < frame.top || box.bottom > frame.bottom) outline.scrollTop += box.top - frame.top - frame.height / 3;
  });
}
addEventListener("scroll", follow, { passive: true });
follow();

function step(direction) {
  const prompts = [...windows.querySelectorAll(".window > article.user")];
  const line = 130;
  const after = prompts.find((prompt) => prompt.getBoundingClientRect().top > line + 4);
  const before = prompts.findLast((prompt) => prompt.getBoundingClientRect().top < line - 12);
  const target = direction > 0 ? after : before;
  if (target) scrollBy(0, target.getBoundingClientRect().top - line);
}
onKey("j", () => step(1));
onKey("k", () => step(-1));

// --- find -----------------------------------------------------------------------------------------------

const find = document.getElementById("find");
onKey("f", () => { find.focus(); find.select(); });
onKey("n", () => document.querySelector('.find [rel="next"]')?.click());
onKey("p", () => document.querySelector('.find [rel="prev"]')?.click());

function words() {
  const query = find.value.replaceAll(/(^|\s)-?\w+:("[^"]*"|\S+)/g, " ").replaceAll(/(^|\s)-\S+/g, " ");
  return query.match(/[\p{L}\p{N}_]+/gu)?.filter((word) => !/^(AND|OR|NOT)$/.test(word)) ?? [];
}

function highlight(part) {
  if (!find.defaultValue || !("highlights" in CSS)) return;
  const found = words();
  if (!found.length) return;
  const pattern = new RegExp(found.map((word) => word.replaceAll(/[$()*+.?[\\\]^{|}]/g, "\\$&")).join("|"), "giu");
  const marks = CSS.highlights.get("found") ?? new Highlight();
  CSS.highlights.set("found", marks);
  const walker = document.createTreeWalker(part, NodeFilter.SHOW_TEXT);
  while (walker.nextNode() && marks.size < 5000) {
    for (const match of walker.currentNode.data.matchAll(pattern)) {
      const range = new Range();
      range.setStart(walker.currentNode, match.index);
      range.setEnd(walker.currentNode, match.index + match[0].length);
      marks.add(range);
    }
  }
}

// --- copy -----------------------------------------------------------------------------------------------

function copyButton(text) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = "copy";
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text());
      button.textContent = "copied";
    } catch {
      button.textContent = "not allowed";
    }
    setTimeout(() => { button.textContent = "copy"; }, 1500);
  });
  return button;
}

function prepare(part) {
  originals.set(part, part.innerHTML);
  for (const links of part.querySelectorAll(".links")) {
    const message = links.parentElement;
    links.append(copyButton(() => {
      const content = message.querySelector(":scope > .content");
      const blocks = content ? [content] : [...message.querySelectorAll(":scope > pre, :scope > details > pre")];
      return blocks.map((block) => block.innerText).join("\n\n").trim();
    }));
  }
  for (const image of part.querySelectorAll(".images img")) {
    image.addEventListener("error", () => image.remove()); // the tool stored only its name
  }
  if (isExpanded) for (const fold of part.querySelectorAll("details")) fold.open = true;
  highlight(part);
}

for (const part of windows.querySelectorAll(".window")) prepare(part);
for (const command of document.querySelectorAll(".copyable")) {
  const button = copyButton(() => command.innerText);
  button.className = "button";
  command.after(button);
}

// --- new messages ---------------------------------------------------------------------------------------

const ref = transcript.dataset.ref;
let isUpdating = false;
let isWanted = false;

// Loads the last window again, if it is shown. What was open stays open, and the end stays in view.
async function updateEnd() {
  const last = [...windows.querySelectorAll(".window")].at(-1);
  if (windows.querySelector(".later") || last?.dataset.empty) return;
  if (isUpdating) { isWanted = true; return; }
  isUpdating = true;
  const added = await load(`from=${last?.dataset.from ?? 0}`);
  isUpdating = false;
  if (added && added.dataset.to !== added.dataset.total) {
    // The window is full. Another one follows.
    const link = document.createElement("p");
    link.className = "later";
    windows.append(link);
    watch(link);
  }
  if (added && last && added.innerHTML !== originals.get(last)) {
    const isAtEnd = innerHeight + scrollY > document.documentElement.scrollHeight - 120;
    const open = new Set([...last.querySelectorAll("details[id]")].filter((fold) => fold.open).map((fold) => fold.id));
    const closed = new Set([...last.querySelectorAll("details[id]:not([open])")].map((fold) => fold.id));
    last.replaceWith(added);
    prepare(added);
    for (const fold of added.querySelectorAll("details[id]")) {
      if (open.has(fold.id)) fold.open = true;
      if (closed.has(fold.id)) fold.open = false;
    }
    if (isAtEnd) scrollTo(0, document.documentElement.scrollHeight);
    updatePrompts();
  }
  if (isWanted) { isWanted = false; updateEnd(); }
}

async function updatePrompts() {
  const list = outline.querySelector(".prompts");
  if (!list) return;
  const response = await fetch(`${transcript.dataset.url}/prompts?part=1`);
  if (!response.ok) return;
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  list.replaceWith(document.importNode(page.querySelector(".prompts"), true));
  follow();
}

onChange((change) => {
  if (change === null || change.ref === ref || change.parent_ref === ref) updateEnd();
});
