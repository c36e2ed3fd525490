// Parts of every page: theme, keys, help, command palette, numbers of charts.
import "./charts.js";
import { onKey } from "./keys.js";
import { openPalette, setUpPalette } from "./palette.js";

const root = document.documentElement;
const button = document.getElementById("theme");

function isDark() {
  return root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

function switchTheme() {
  root.dataset.theme = isDark() ? "light" : "dark";
  try { localStorage.setItem("backscroll-theme", root.dataset.theme); } catch { /* storage can be disabled */ }
}

button.hidden = false;
button.addEventListener("click", switchTheme);
onKey("t", switchTheme);

onKey("/", () => {
  const input = document.getElementById("q");
  input.focus();
  input.select();
});
onKey("g h", () => { location.href = "/"; });
onKey("g s", () => { location.href = "/sessions"; });

const help = document.getElementById("help");
document.querySelector(".keys").hidden = false;
onKey("?", () => help.showModal());

setUpPalette([["Switch between light and dark", switchTheme], ["Show all keys", () => help.showModal()]]);
const opener = document.getElementById("open-palette");
opener.hidden = false;
if (/Mac|iP/.test(navigator.platform)) opener.querySelector("kbd").textContent = "⌘K";
opener.addEventListener("click", openPalette);

// A button that starts something slow says so, and works only once.
document.addEventListener("submit", (event) => {
  const label = event.submitter?.dataset.busy;
  if (!label) return;
  if (event.submitter.ariaBusy === "true") event.preventDefault();
  event.submitter.ariaBusy = "true";
  event.submitter.textContent = label;
});
