"use strict";
// Runs before the page is painted, so that diffs do not change their layout.
try {
  if (localStorage.getItem("backscroll-diff") === "split") document.documentElement.dataset.diff = "split";
} catch { /* storage can be disabled */ }
