// Diffs side by side or inline. The choice is remembered; diff_layout.js applies it before the page is painted.
import { onKey } from "./keys.js";

const root = document.documentElement;
const button = document.getElementById("diff-layout");

function showState() {
  button.setAttribute("aria-pressed", String(root.dataset.diff === "split"));
}

// Changes the layout. The line that is read stays where it is.
function toggle() {
  const anchor = firstInView();
  const top = anchor?.getBoundingClientRect().top;
  if (root.dataset.diff === "split") delete root.dataset.diff;
  else root.dataset.diff = "split";
  if (anchor) scrollBy(0, anchor.getBoundingClientRect().top - top);
  try { localStorage.setItem("backscroll-diff", root.dataset.diff ?? "inline"); } catch { /* storage can be disabled */ }
  showState();
}

function firstInView() {
  const parts = document.querySelectorAll(".window > *, pre.diff del, pre.diff ins");
  return [...parts].filter((part) => part.getBoundingClientRect().height).findLast((part) => part.getBoundingClientRect().top < innerHeight / 3);
}

export function setUpDiffs() {
  if (!button) return;
  button.hidden = false;
  showState();
  button.addEventListener("click", toggle);
  onKey("d", toggle);
}
