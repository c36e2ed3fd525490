// The session list: keyboard, and folded filters on small screens.
import { moveFocus, onKey } from "./keys.js";
import { onChange, refresher, replaceParts } from "./live.js";

const links = () => [...document.querySelectorAll(".row-link")];
onKey("j", () => moveFocus(links(), 1));
onKey("k", () => moveFocus(links(), -1));

const fold = document.querySelector(".filters-fold");
const isSmall = matchMedia("(max-width: 56rem)");
const adapt = () => { fold.open = !isSmall.matches; };
if (fold) {
  adapt();
  isSmall.addEventListener("change", adapt);
}

onChange(refresher((page) => {
  if (document.querySelector(".empty") && !page.querySelector(".empty")) location.reload();
  replaceParts(page, [".list", ".recent", ".notices"]);
}));

// The figures of a large archive take a moment.
const figures = document.querySelector("#figures[data-load]");
if (figures) {
  figures.firstElementChild.textContent = "Counting …";
  fetch(figures.dataset.load).then((response) => response.text()).then((text) => {
    const page = new DOMParser().parseFromString(text, "text/html");
    figures.replaceWith(document.importNode(page.getElementById("figures"), true));
  }).catch(() => { figures.remove(); });
}
