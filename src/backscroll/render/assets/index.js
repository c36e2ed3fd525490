const box = document.getElementById("search");
const counter = document.getElementById("found");
const body = document.querySelector("tbody");
const rows = [...body.rows];
const texts = rows.map((row) => row.textContent.toLowerCase());

function filter() {
  const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
  let shown = 0;
  rows.forEach((row, index) => {
    row.hidden = !words.every((word) => texts[index].includes(word));
    shown += !row.hidden;
  });
  counter.value = words.length ? `${shown} of ${rows.length}` : "";
}
box.addEventListener("input", filter);
filter();

document.querySelectorAll("thead button").forEach((button, column) => {
  button.addEventListener("click", () => {
    const heading = button.closest("th");
    const down = heading.getAttribute("aria-sort") !== "descending";
    document.querySelectorAll("th").forEach((other) => other.removeAttribute("aria-sort"));
    heading.setAttribute("aria-sort", down ? "descending" : "ascending");
    const key = (row) => row.cells[column].dataset.value ?? row.cells[column].textContent.toLowerCase();
    const number = heading.classList.contains("number");
    const order = (a, b) => number ? Number(key(a)) - Number(key(b)) : key(a).localeCompare(key(b));
    body.append(...[...body.rows].sort((a, b) => down ? order(b, a) : order(a, b)));
  });
});

addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape") { box.value = ""; filter(); box.blur(); }
  if (event.target === box) return;
  if (event.key === "/") { event.preventDefault(); box.focus(); }
  if (event.key === "t") swapTheme();
});
