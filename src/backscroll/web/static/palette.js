// The command palette: pages, actions, workspaces and sessions, with the keyboard alone.
const FETCH_MS = 80;
const dialog = document.getElementById("palette");
const input = dialog.querySelector("input");
const list = dialog.querySelector("[role=listbox]");
const status = dialog.querySelector("[role=status]");
const PAGES = [["Home", "/"], ["Sessions", "/sessions"], ["Search", "/search"], ["Commits", "/commits"], ["Journal", "/journal"], ["Files", "/files"], ["Health", "/health"], ["Backups", "/health#backups"]];
let actions = [];
let suggestions = [];
let controller = new AbortController();
let timer = 0;
let shown = [];
let selected = 0;
let isMoved = false; // the user has chosen a suggestion, which stays selected when others arrive

export function setUpPalette(named) {
  actions = named.map(([label, run]) => ({ group: "Actions", label, run }));
  document.addEventListener("keydown", (event) => {
    const isShortcut = event.key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey;
    if (!isShortcut) return;
    event.preventDefault();
    if (dialog.open) dialog.close();
    else openPalette();
  });
}

export function openPalette() {
  if (document.querySelector("dialog[open]")) return;
  input.value = "";
  suggestions = [];
  isMoved = false;
  dialog.showModal();
  show();
  load();
}

async function load() {
  controller.abort();
  controller = new AbortController();
  const { signal } = controller;
  try {
    const response = await fetch(`/palette?q=${encodeURIComponent(input.value)}`, { signal });
    if (!response.ok || signal.aborted) return;
    suggestions = (await response.json()).data;
    show();
  } catch { /* aborted by the next key, or the server has ended */ }
}

// Every word of the input is in the label.
function isMatch(label) {
  const text = label.toLowerCase();
  return input.value.toLowerCase().split(/\s+/).every((word) => text.includes(word));
}

function items() {
  const text = input.value.trim();
  const local = [...PAGES.map(([label, url]) => ({ group: "Pages", label, url })), ...actions].filter((item) => isMatch(item.label));
  const everywhere = text ? [{ group: "Search", label: `Search everything for “${text}”`, url: `/search?q=${encodeURIComponent(text)}` }] : [];
  return text ? [...local, ...suggestions, ...everywhere] : [...suggestions, ...local];
}

function show() {
  const before = isMoved ? shown[selected] : null;
  shown = items();
  selected = Math.max(0, shown.findIndex((item) => item.label === before?.label && item.url === before?.url));
  const groups = [];
  shown.forEach((item, number) => {
    if (groups.at(-1)?.dataset.name !== item.group) groups.push(group(item.group, groups.length));
    groups.at(-1).append(option(item, number));
  });
  list.replaceChildren(...groups);
  status.textContent = shown.length ? `${shown.length} suggestions` : "Nothing found";
  select(selected);
}

function group(name, number) {
  const element = document.createElement("div");
  element.setAttribute("role", "group");
  element.dataset.name = name;
  const heading = document.createElement("div");
  heading.className = "palette-group";
  heading.id = `palette-group-${number}`;
  heading.textContent = name;
  element.setAttribute("aria-labelledby", heading.id);
  element.append(heading);
  return element;
}

function option(item, number) {
  const element = document.createElement("div");
  element.setAttribute("role", "option");
  element.id = `palette-option-${number}`;
  const label = document.createElement("span");
  (item.parts ?? [item.label]).forEach((text, index) => {
    const isMarked = index % 2 === 1;
    const part = isMarked ? document.createElement("mark") : document.createTextNode(text);
    if (isMarked) part.textContent = text;
    label.append(part);
  });
  element.append(label);
  if (item.detail) {
    const detail = document.createElement("small");
    detail.textContent = item.detail;
    element.append(detail);
  }
  element.addEventListener("mousemove", () => { if (selected !== number) { isMoved = true; select(number); } });
  element.addEventListener("click", (event) => run(number, event.ctrlKey || event.metaKey));
  return element;
}

function select(number) {
  selected = number;
  for (const element of list.querySelectorAll("[role=option]")) {
    const isSelected = element.id === `palette-option-${number}`;
    element.setAttribute("aria-selected", String(isSelected));
    if (isSelected) element.scrollIntoView({ block: "nearest" });
  }
  if (shown.length) input.setAttribute("aria-activedescendant", `palette-option-${number}`);
  else input.removeAttribute("aria-activedescendant");
}

function run(number, isNewTab) {
  const item = shown[number];
  if (!item) return;
  dialog.close();
  if (item.run) item.run();
  else if (isNewTab) window.open(item.url, "_blank", "noopener");
  else location.href = item.url;
}

input.addEventListener("input", () => {
  isMoved = false;
  show();
  clearTimeout(timer);
  timer = setTimeout(load, FETCH_MS);
});
input.addEventListener("keydown", (event) => {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (step && shown.length) {
    event.preventDefault();
    isMoved = true;
    select((selected + step + shown.length) % shown.length);
  } else if (event.key === "Enter") {
    event.preventDefault();
    run(selected, event.ctrlKey || event.metaKey);
  }
});
dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); }); // the backdrop
dialog.addEventListener("close", () => controller.abort());
