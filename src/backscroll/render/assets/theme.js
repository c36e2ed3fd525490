"use strict";
const root = document.documentElement;
const remembered = () => { try { return localStorage.getItem("backscroll-theme"); } catch { return null; } };
if (remembered()) root.dataset.theme = remembered();
const dark = () => root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
const swapTheme = () => {
  root.dataset.theme = dark() ? "light" : "dark";
  try { localStorage.setItem("backscroll-theme", root.dataset.theme); } catch { /* pages opened from disk may have no storage */ }
};
document.getElementById("theme").addEventListener("click", swapTheme);
