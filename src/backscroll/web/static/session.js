// A session: loads more messages while scrolling, jumps, folds.
import { setUpDiffs } from "./diffs.js";
import { find, setUpFind } from "./find.js";
import { onKey } from "./keys.js";
import { onChange } from "./live.js";
import { addCopyButton, colorWhenVisible, decorate, focusScrollable } from "./message_tools.js";
import { followMinimap, setUpMinimap, updateMinimap } from "./minimap.js";
import { scheduleFacts } from "./session_facts.js";

const transcript = document.querySelector(".transcript");
const windows = transcript.querySelector(".windows");
const MAX_WINDOWS = 9; // with content; others keep their height only
const everything = transcript.dataset.all ? "&all=1" : "";
const originals = new WeakMap(); // the last window as the server sent it
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
  const isLast = isEarlier ? added.dataset.from === "0" : added.dataset.to === added.dataset.total;
  if (isEarlier) {
    insertAbove(added, all[0], isLast ? link : null);
  } else {
    all.at(-1).after(added);
    prepare(added);
  }
  observer.unobserve(link);
  if (isLast) link.remove();
  else {
    delete link.dataset.isLoading;
    observer.observe(link); // fires again if it is still in view
  }
  release();
}

// Adds messages above others, which stay where they are. Browsers do not see to it at the top of a page.
function insertAbove(added, below, removed) {
  const root = document.documentElement;
  const kept = below.querySelector('[id^="m"]') ?? below; // a repeated heading above it can disappear
  const top = kept.getBoundingClientRect().top;
  root.style.overflowAnchor = "none";
  below.before(added);
  removed?.remove();
  prepare(added);
  scrollBy(0, kept.getBoundingClientRect().top - top);
  requestAnimationFrame(() => { root.style.overflowAnchor = ""; });
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
  const added = await load(`from=${empty.dataset.from}&to=${empty.dataset.to}`);
  delete empty.dataset.isLoading;
  if (!added) { observer.observe(empty); return; }
  empty.replaceWith(added);
  prepare(added);
  release();
}

watch(windows.querySelector(".earlier"));
watch(windows.querySelector(".later"));

// --- jumps ----------------------------------------------------------------------------------------------

const CONTEXT_MESSAGES = 4; // before the message

function windowAt(position) {
  return [...windows.querySelectorAll(".window")].find(
    (part) => Number(part.dataset.from) <= position && position < Number(part.dataset.to),
  );
}

// Shows a message. If it is not loaded, its surroundings replace the loaded messages.
async function jump(position, url) {
  let part = windowAt(position);
  if (part?.dataset.empty) {
    await refill(part);
    part = windowAt(position);
  }
  const isLoaded = !part;
  if (isLoaded) {
    part = await load(`from=${Math.max(0, position - CONTEXT_MESSAGES)}`);
    if (!part) { location.href = url; return; }
    const edges = { earlier: part.dataset.from !== "0", later: part.dataset.to !== part.dataset.total };
    const [earlier, later] = Object.entries(edges).map(([name, isNeeded]) => {
      const edge = document.createElement("p");
      edge.className = name;
      return isNeeded ? edge : "";
    });
    windows.replaceChildren(earlier, part, later);
    prepare(part);
    scrollToMessage(position);
    watch(earlier || null);
    watch(later || null);
  }
  if (url) {
    const [page, hash] = url.split("#");
    history.pushState(null, "", page);
    location.replace(`#${hash}`); // marks the message as the target
  } else if (isLoaded && location.hash) {
    location.replace(location.hash); // the message did not exist when the browser looked for its target
  }
  scrollToMessage(position);
  follow();
}

// Scrolls to a message, or to the next one that is shown.
function scrollToMessage(position) {
  const shown = [...windows.querySelectorAll('.window [id^="m"]')].find((one) => Number(one.id.slice(1)) >= position);
  if (shown) reveal(shown);
}

// Returns the positions of the first and the last message in the viewport.
function visibleRange() {
  const top = find.form.getBoundingClientRect().bottom;
  let first = null;
  let last = null;
  for (const part of windows.querySelectorAll(".window:not([data-empty])")) {
    const frame = part.getBoundingClientRect();
    if (frame.bottom < top || frame.top > innerHeight) continue;
    for (const one of part.querySelectorAll(':scope > [id^="m"], :scope > .branch > [id^="m"]')) {
      const box = one.getBoundingClientRect();
      if (!box.height || box.bottom < top) continue;
      if (box.top > innerHeight) break;
      const position = Number(one.id.slice(1));
      first ??= position;
      last = position;
    }
  }
  return first === null ? null : [first, last];
}

// After a star, tag, note or title, the page shows the same messages again.
document.querySelector(".annotations")?.addEventListener("submit", (event) => {
  const url = new URL(location.href);
  const place = scrollY > 0 && visibleRange();
  if (place) {
    url.searchParams.set("at", place[0]);
    url.hash = `m${place[0]}`;
  }
  event.target.elements.next.value = url.pathname + url.search + url.hash;
});

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
  if (event.target.open) {
    focusScrollable(event.target);
    colorWhenVisible(event.target);
  }
  const link = event.target.open && event.target.querySelector(":scope > .nested > [data-src]");
  if (!link) return;
  const source = link.dataset.src;
  link.removeAttribute("data-src");
  const response = await fetch(`${source}/window?from=0`);
  if (!response.ok) return;
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  const part = document.importNode(page.querySelector(".window"), true);
  for (const element of part.querySelectorAll("[id]")) element.removeAttribute("id");
  decorate(part);
  link.after(...part.children);
  const rest = part.dataset.total - part.dataset.to;
  if (!rest) return;
  const more = document.createElement("p");
  more.className = "agent-link";
  const address = document.createElement("a");
  address.href = `${source}?from=${part.dataset.to}`;
  address.textContent = `Later messages (${rest.toLocaleString("en")})`;
  more.append(address);
  event.target.querySelector(":scope > .nested").append(more);
}, true);

// Opens everything around a message and scrolls to it.
function reveal(target) {
  for (let element = target; element; element = element.parentElement) {
    if (element.tagName === "DETAILS") element.open = true;
  }
  target.scrollIntoView({ block: "start" });
}

// Shows the message that the address names. Without one, a page that is returned to shows its first messages.
function followAddress(event) {
  const target = location.hash && document.getElementById(location.hash.slice(1));
  if (target) reveal(target);
  else if (/^#m\d+$/.test(location.hash)) jump(Number(location.hash.slice(2)), "");
  else if (event?.type === "popstate" && !location.hash) {
    const first = Number(new URLSearchParams(location.search).get("from") ?? 0);
    if (!windowAt(first)) jump(first, "");
  }
}

addEventListener("hashchange", followAddress);
addEventListener("popstate", followAddress);

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

// A prompt is reached without a new page.
outline.addEventListener("click", (event) => {
  const link = event.target.closest("[data-position]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  event.preventDefault();
  jump(Number(link.dataset.position), link.getAttribute("href"));
});

let isScheduled = false;
function follow() {
  if (isScheduled) return;
  isScheduled = true;
  requestAnimationFrame(() => {
    isScheduled = false;
    followMinimap();
    let current = null;
    for (const prompt of windows.querySelectorAll(".window > article.user")) {
      if (current !== null && prompt.getBoundingClientRect().top > 280) break;
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
addEventListener("resize", follow);

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

// --- parts ----------------------------------------------------------------------------------------------

// Prepares messages that were just added.
function prepare(part) {
  if (part.dataset.to === part.dataset.total) originals.set(part, part.innerHTML);
  decorate(part);
  hideRepeatedHeadings();
  part.querySelectorAll("details[open]").forEach(focusScrollable);
  if (isExpanded) for (const fold of part.querySelectorAll("details")) fold.open = true;
}

// A part starts with its day and its origin, also if they are the same as before.
function hideRepeatedHeadings() {
  for (const name of [".day", ".copy-note"]) {
    let before = null;
    for (const heading of windows.querySelectorAll(`.window > ${name}`)) {
      heading.hidden = heading.textContent === before;
      before = heading.textContent;
    }
  }
}

for (const part of windows.querySelectorAll(".window")) prepare(part);
for (const command of document.querySelectorAll(".copyable")) addCopyButton(command);

// --- new messages ---------------------------------------------------------------------------------------

const ref = transcript.dataset.ref;
let isUpdating = false;
let isWanted = false;

// Loads the last window again, if it is shown. What was open stays open, and the end stays in view.
async function updateEnd() {
  const last = [...windows.querySelectorAll(".window")].at(-1);
  if (windows.querySelector(".later") || last?.dataset.empty) {
    updateOutline();
    return;
  }
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
    updateOutline();
  }
  if (isWanted) { isWanted = false; updateEnd(); }
}

function updateOutline() {
  updatePrompts();
  updateMinimap(`${transcript.dataset.url}/minimap?${everything}`);
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
  if (change !== null && change.ref !== ref && change.parent_ref !== ref) return;
  updateEnd();
  scheduleFacts(transcript.dataset.url, () => [...windows.querySelectorAll(".window")].at(-1)?.dataset.total ?? 0);
});

// --- start ----------------------------------------------------------------------------------------------

setUpDiffs();
setUpFind(jump);
setUpMinimap(jump, visibleRange);
followAddress();
follow();
