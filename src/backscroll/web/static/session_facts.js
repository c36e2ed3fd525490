// The facts beside the messages of a live session: time, messages, tokens, subagents.
import { replaceParts } from "./live.js";

const DELAY_MS = 1000; // also the shortest time between two updates
let timer = 0;

// Loads the page of a session without messages: from its end on.
export function scheduleFacts(url, total) {
  timer ||= setTimeout(update, DELAY_MS, url, total);
}

async function update(url, total) {
  timer = 0;
  try {
    const response = await fetch(`${url}?from=${total()}`);
    if (!response.ok) return;
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    replaceParts(page, [".session-head", ".about .facts", ".about .subagents"]);
    document.querySelector(".about .subagents").hidden = page.querySelector(".about .subagents").hidden;
  } catch { /* the next change tries again */ }
}
