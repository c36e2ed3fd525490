// Find in a session: highlights the words, and goes from match to match without a new page.
import { onKey } from "./keys.js";

export const find = document.getElementById("find");
const MAX_MARKS = 5000;

export function setUpFind(jump) {
  onKey("f", () => { find.focus(); find.select(); });
  const status = document.querySelector(".found");
  const positions = (status?.dataset.positions ?? "").split(",").filter(Boolean).map(Number);
  if (!positions.length) return;
  const total = positions.length.toLocaleString("en");
  let current = Number(status.dataset.current || -1);

  function go(step) {
    current = current < 0 ? 0 : (current + step + positions.length) % positions.length;
    status.querySelector(".current").textContent = `Match ${(current + 1).toLocaleString("en")} of ${total}`;
    const url = new URL(location.href);
    url.searchParams.set("at", positions[current]);
    jump(positions[current], `${url.pathname}${url.search}#m${positions[current]}`);
  }

  if (current >= 0 && !location.hash) jump(positions[current], "");
  for (const [name, key, step] of [["prev", "p", -1], ["next", "n", 1]]) {
    onKey(key, () => go(step));
    document.querySelector(`.find [rel="${name}"]`)?.addEventListener("click", (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
      event.preventDefault();
      go(step);
    });
  }
}

function words() {
  const query = find.value.replaceAll(/(^|\s)-?\w+:("[^"]*"|\S+)/g, " ").replaceAll(/(^|\s)-\S+/g, " ");
  return query.match(/[\p{L}\p{N}_]+/gu)?.filter((word) => !/^(AND|OR|NOT)$/.test(word)) ?? [];
}

export function highlight(part) {
  if (!find.defaultValue || !("highlights" in CSS)) return;
  const found = words();
  if (!found.length) return;
  const pattern = new RegExp(found.map((word) => word.replaceAll(/[$()*+.?[\\\]^{|}]/g, "\\$&")).join("|"), "giu");
  const marks = CSS.highlights.get("found") ?? new Highlight();
  CSS.highlights.set("found", marks);
  const walker = document.createTreeWalker(part, NodeFilter.SHOW_TEXT);
  while (walker.nextNode() && marks.size < MAX_MARKS) {
    for (const match of walker.currentNode.data.matchAll(pattern)) {
      const range = new Range();
      range.setStart(walker.currentNode, match.index);
      range.setEnd(walker.currentNode, match.index + match[0].length);
      marks.add(range);
    }
  }
}
