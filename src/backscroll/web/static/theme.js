"use strict";
// Runs before the page is painted, so that it does not flash in the other theme.
try {
  const theme = localStorage.getItem("backscroll-theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch { /* storage can be disabled */ }
