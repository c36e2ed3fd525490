// The numbers of a chart appear at once beside the pointer. Without this script, the browser shows them later.
const tip = document.createElement("div");
tip.className = "tip";
tip.setAttribute("aria-hidden", "true"); // the shape has the same text as its title
tip.hidden = true;
let shape = null;
let text = "";

function titleOf(target) {
  return (target.closest?.(".chart a, .chart g") ?? target.closest?.(".chart rect"))?.querySelector("title") ?? null;
}

function hide() {
  if (shape) shape.textContent = text; // the browser's own tooltip is off while ours is shown
  shape = null;
  tip.hidden = true;
}

document.addEventListener("pointerover", (event) => {
  const title = titleOf(event.target);
  if (title === shape) return;
  hide();
  if (!title?.textContent) return;
  shape = title;
  text = title.textContent;
  title.textContent = "";
  tip.textContent = text;
  tip.hidden = false;
  document.body.append(tip);
});
document.addEventListener("pointermove", (event) => {
  if (!shape) return;
  const { width, height } = tip.getBoundingClientRect();
  const left = Math.min(Math.max(8, event.clientX - width / 2), innerWidth - width - 8);
  const above = event.clientY - height - 14;
  tip.style.left = `${left}px`;
  tip.style.top = `${above > 8 ? above : event.clientY + 20}px`;
});
document.addEventListener("scroll", hide, { capture: true, passive: true });
document.addEventListener("pointerleave", hide);
