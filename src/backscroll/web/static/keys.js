// Keyboard shortcuts. A key is ignored while the user types, and with a modifier.
const actions = new Map();

export function onKey(key, action) {
  actions.set(key, action);
}

let prefix = "";
let prefixTimer = 0;

document.addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
  if (document.querySelector("dialog[open]")) return; // Escape closes it
  const target = event.target;
  if (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName)) {
    if (event.key === "Escape") {
      event.preventDefault(); // Chromium would clear the search
      target.blur();
    }
    return;
  }
  const key = prefix + event.key;
  clearTimeout(prefixTimer);
  prefix = "";
  if (event.key === "g" && key === "g") {
    prefix = "g ";
    prefixTimer = setTimeout(() => { prefix = ""; }, 1200);
    return;
  }
  const action = actions.get(key);
  if (!action) return;
  event.preventDefault();
  action();
});

// Moves the focus through links, from the focused one on, or from the first one in the viewport.
export function moveFocus(links, step) {
  if (!links.length) return;
  const index = links.indexOf(document.activeElement);
  const visible = links.findIndex((link) => link.getBoundingClientRect().top > 60);
  const next = index >= 0 ? index + step : Math.max(visible, 0);
  const link = links[Math.min(Math.max(next, 0), links.length - 1)];
  link.focus({ preventScroll: true });
  link.scrollIntoView({ block: "nearest" });
}
