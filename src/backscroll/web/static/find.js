// Find in a session: highlights the words, and goes from match to match without a new page.
import { onKey } from "./keys.js";

export const find = document.getElementById("find");
const MAX_MARKS = 5000;
const MAX_REGEX_CHARS = 2000; // of a text in which the browser looks for a regular expression

export function setUpFind(jump) {
  onKey("f", () => { find.focus(); find.select(); });
  const status = document.querySelector(".found");
  const positions = (status?.dataset.positions ?? "").split(",").filter(Boolean).map(Number);
  if (!positions.length) return;
  const total = `${status.dataset.isPartial ? "at least " : ""}${positions.length.toLocaleString("en")}`;
  const first = Number(status.dataset.current || -1); // of the address that the page was opened with
  let current = first;

  function show(index) {
    current = index;
    status.querySelector(".current").textContent = `Match ${(current + 1).toLocaleString("en")} of ${total}`;
  }

  function go(step) {
    show(current < 0 ? 0 : (current + step + positions.length) % positions.length);
    const url = new URL(location.href);
    url.searchParams.set("at", positions[current]);
    jump(positions[current], `${url.pathname}${url.search}#m${positions[current]}`);
  }

  // Back and Forward lead to other matches.
  addEventListener("popstate", () => {
    const at = new URLSearchParams(location.search).get("at");
    const index = at === null ? first : positions.indexOf(Number(at));
    if (index >= 0) show(index);
  });
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

// Returns what to highlight, null if there is nothing or the browser does not know the syntax.
// Unlike the server's engine, the browser's can take forever for a repeated group.
function pattern() {
  const { mode } = find.form.dataset;
  if (mode === "regex" && /\)[*+?{]/.test(find.defaultValue)) return null;
  const escape = (text) => text.replaceAll(/[$()*+.?[\\\]^{|}]/g, "\\$&");
  const source = mode === "regex" ? find.defaultValue : mode === "exact" ? escape(find.defaultValue) : words().map(escape).join("|");
  try {
    return source ? new RegExp(source, mode === "regex" ? "gimu" : "giu") : null;
  } catch {
    return null;
  }
}

export function highlight(part) {
  if (!find.defaultValue || !("highlights" in CSS)) return;
  const found = pattern();
  if (!found) return;
  const marks = CSS.highlights.get("found") ?? new Highlight();
  CSS.highlights.set("found", marks);
  const walker = document.createTreeWalker(part, NodeFilter.SHOW_TEXT);
  const maxChars = find.form.dataset.mode === "regex" ? MAX_REGEX_CHARS : Infinity;
  while (walker.nextNode() && marks.size < MAX_MARKS) {
    if (walker.currentNode.length > maxChars) continue;
    for (const match of walker.currentNode.data.matchAll(found)) {
      if (!match[0]) continue;
      const range = new Range();
      range.setStart(walker.currentNode, match.index);
      range.setEnd(walker.currentNode, match.index + match[0].length);
      marks.add(range);
    }
  }
}
