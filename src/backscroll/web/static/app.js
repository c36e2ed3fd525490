// Parts of every page: theme, search key, help.
import { onKey } from "./keys.js";

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
