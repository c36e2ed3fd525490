// Additions to messages: copy buttons, highlighted matches, images that the tool did not store.
import { highlight } from "./find.js";

const COPIED_MS = 1500;

function copyButton(text) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = "copy";
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text());
      button.textContent = "copied";
    } catch {
      button.textContent = "not allowed";
    }
    setTimeout(() => { button.textContent = "copy"; }, COPIED_MS);
  });
  return button;
}

// Adds a button after a command.
export function addCopyButton(command) {
  const button = copyButton(() => command.innerText);
  button.className = "button";
  command.after(button);
}

// A diff is copied as a unified diff, whatever its layout.
function plainText(block) {
  if (!block.classList.contains("diff")) return block.innerText;
  const copy = block.cloneNode(true);
  for (const repeated of copy.querySelectorAll(".again")) repeated.remove();
  return copy.textContent;
}

// Long results scroll. They can be focused, so that the keyboard scrolls them, too.
export function focusScrollable(fold) {
  for (const block of fold.querySelectorAll(":scope > pre, :scope > details[open] > pre")) if (block.scrollHeight > block.clientHeight + 1) block.tabIndex = 0;
}

// Code in folded calls is not highlighted. When an opened call comes into view, it is loaded with colors.
const opened = new IntersectionObserver((entries) => {
  for (const { isIntersecting, target } of entries) if (isIntersecting) loadColors(target);
}, { rootMargin: "600px 0px" });

export function colorWhenVisible(fold) {
  if ("plain" in fold.dataset) opened.observe(fold);
}

async function loadColors(fold) {
  opened.unobserve(fold);
  const record = fold.querySelector(":scope > .links a:last-of-type");
  if (!record || !("plain" in fold.dataset)) return;
  delete fold.dataset.plain;
  try {
    const response = await fetch(`${record.href}/highlighted`);
    if (!response.ok) return;
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    const before = fold.querySelectorAll("pre"), after = page.querySelectorAll("pre");
    if (before.length !== after.length) return; // the message has changed
    before.forEach((block, index) => {
      const colored = document.importNode(after[index], true);
      if (block.tabIndex === 0) colored.tabIndex = 0;
      block.replaceWith(colored);
    });
    highlight(fold);
  } catch { /* it stays plain */ }
}

export function decorate(part) {
  for (const links of part.querySelectorAll(".links")) {
    const message = links.parentElement;
    links.append(copyButton(() => {
      const content = message.querySelector(":scope > .content");
      const blocks = content ? [content] : [...message.querySelectorAll(":scope > pre, :scope > details > pre")];
      return blocks.map(plainText).join("\n\n").trim();
    }));
  }
  for (const block of part.querySelectorAll(".code")) {
    const button = copyButton(() => block.querySelector("pre").innerText.replace(/\n$/, ""));
    button.className = "copy-code";
    block.append(button);
  }
  for (const image of part.querySelectorAll(".images img")) {
    image.addEventListener("error", () => replaceByText(image));
    if (image.complete && !image.naturalWidth) replaceByText(image);  // it failed before this script ran
  }
  highlight(part);
}

function replaceByText(image) {
  const text = document.createElement("span");
  text.className = "no-image";
  text.textContent = `The image ${image.alt} is not available. The tool has deleted it, or it is not a PNG, JPEG, GIF or WebP file.`;
  image.parentElement.replaceWith(text);
}
