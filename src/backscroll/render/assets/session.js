const main = document.querySelector("main");
const box = document.getElementById("search");
const counter = document.getElementById("found");
const MAX_MATCHES = 5000;
let ranges = [];
let current = -1;

// Search per block, so that a match can span highlighted words.
const blocks = () => main.querySelectorAll("h1, dd, .author, summary, pre, .content p, .content li, .content td, .content th, .content h1, .content h2, .content h3, .content h4, .content h5, .content h6, .attachments li");

function search(needle) {
  ranges = [];
  current = -1;
  needle = needle.toLowerCase();
  if (needle) {
    for (const block of blocks()) {
      if (ranges.length >= MAX_MATCHES) break;
      const lower = block.textContent.toLowerCase();
      if (!lower.includes(needle)) continue;
      const nodes = [];
      const walker = document.createTreeWalker(block, NodeFilter.SHOW_TEXT);
      for (let length = 0; walker.nextNode(); length += walker.currentNode.length) nodes.push([length, walker.currentNode]);
      const at = (offset) => {
        let low = 0, high = nodes.length - 1;
        while (low < high) {
          const middle = (low + high + 1) >> 1;
          if (nodes[middle][0] <= offset) low = middle; else high = middle - 1;
        }
        return [nodes[low][1], Math.min(offset - nodes[low][0], nodes[low][1].length)];
      };
      for (let place = lower.indexOf(needle); place >= 0 && ranges.length < MAX_MATCHES; place = lower.indexOf(needle, place + needle.length)) {
        const range = document.createRange();
        range.setStart(...at(place));
        const [node, offset] = at(place + needle.length - 1);
        range.setEnd(node, Math.min(offset + 1, node.length));
        const last = ranges[ranges.length - 1];
        if (!last || last.compareBoundaryPoints(Range.START_TO_START, range) < 0) ranges.push(range);
      }
    }
  }
  if (window.Highlight) CSS.highlights.set("found", new Highlight(...ranges));
  if (ranges.length) go(1); else showStatus();
}

function showStatus() {
  if (!box.value) counter.value = "";
  else if (!ranges.length) counter.value = "no matches";
  else counter.value = `${current + 1} of ${ranges.length}${ranges.length >= MAX_MATCHES ? "+" : ""}`;
}

function go(step) {
  if (!ranges.length) return showStatus();
  current = (current + step + ranges.length) % ranges.length;
  const range = ranges[current];
  const element = range.startContainer.parentElement;
  for (let fold = element.closest("details"); fold; fold = fold.parentElement.closest("details")) {
    if (!element.closest("summary") || element.closest("summary").parentElement !== fold) fold.open = true;
  }
  if (window.Highlight) CSS.highlights.set("current", new Highlight(range));
  else { const selection = getSelection(); selection.removeAllRanges(); selection.addRange(range); }
  const place = range.getBoundingClientRect();
  if (place.top < 70 || place.bottom > innerHeight - 20) scrollTo({ top: scrollY + place.top - innerHeight / 3 });
  showStatus();
}

let waiting;
box.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(() => search(box.value), 150); });
box.addEventListener("keydown", (event) => {
  if (event.key === "Enter") { event.preventDefault(); go(event.shiftKey ? -1 : 1); }
  if (event.key === "Escape") { box.value = ""; search(""); box.blur(); }
});
document.getElementById("next").addEventListener("click", () => go(1));
document.getElementById("previous").addEventListener("click", () => go(-1));

const expand = document.getElementById("expand");
function toggleAll() {
  const open = expand.textContent === "Expand";
  for (const fold of main.querySelectorAll("details")) fold.open = open;
  expand.textContent = open ? "Collapse" : "Expand";
}
expand.addEventListener("click", toggleAll);

function turn(step) {
  const tops = [...document.querySelectorAll("section.turn")].map((one) => one.getBoundingClientRect().top);
  const here = step > 0 ? tops.findIndex((top) => top > 80) : tops.findLastIndex((top) => top < 40);
  if (here >= 0) document.querySelectorAll("section.turn")[here].scrollIntoView();
}

addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|TEXTAREA)$/.test(event.target.tagName)) return;
  const keys = { "/": () => box.focus(), j: () => turn(1), k: () => turn(-1), n: () => go(1), N: () => go(-1), e: toggleAll, t: swapTheme };
  if (keys[event.key]) { event.preventDefault(); keys[event.key](); }
});

// Open the collapsed elements around the target of a link.
function reveal() {
  const target = location.hash.length > 1 && document.getElementById(location.hash.slice(1));
  for (let fold = target && target.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
  if (target) target.scrollIntoView();
}
addEventListener("hashchange", reveal);
reveal();
