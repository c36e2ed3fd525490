// Live updates: changes arrive as server-sent events while the page is visible.
let source = null;
const listeners = [];

export function onChange(listener) {
  listeners.push(listener);
}

// A change is null if any session may have changed. The first sync ends once.
function notify(change, isSyncEnd = false) {
  for (const listener of listeners) listener(change, isSyncEnd);
}

// The server reports changes that happened after this page was rendered.
function connect(isAgain) {
  if (source || document.hidden) return;
  source = new EventSource(`/events?since=${document.body.dataset.revision}`);
  source.addEventListener("change", (event) => notify(JSON.parse(event.data)));
  source.addEventListener("sync", (event) => showStatus(JSON.parse(event.data)));
  if (isAgain) notify(null); // something may have changed in the meantime
}

// A hidden page closes its connection: browsers allow only six to one server.
document.addEventListener("visibilitychange", () => {
  if (document.hidden) {
    source?.close();
    source = null;
  } else {
    connect(true);
  }
});
addEventListener("pagehide", () => { source?.close(); source = null; });
addEventListener("pageshow", (event) => connect(event.persisted));

function showStatus(status) {
  const parts = document.querySelectorAll(".banner:not(.demo), .sync");
  for (const part of parts) {
    if (status.is_complete) part.remove();
    else showProgress(part, status);
  }
  notify(null, status.is_complete && parts.length > 0);
}

function showProgress(part, { percent, remaining_seconds: seconds }) {
  const bar = part.querySelector("progress");
  if (bar && percent !== null) bar.value = percent;
  const left = seconds === null ? ""
    : seconds < 90 ? `, about ${Math.max(5, 5 * Math.round(seconds / 5))} s left` : `, about ${Math.round(seconds / 60)} min left`;
  part.querySelector(".progress").textContent = percent === null ? "" : `${percent} % done${left}.`;
}

// Fetches the address of this page, at most once at a time, and passes the new document on.
export function refresher(apply, delay = 300) {
  let timer = 0;
  let isRunning = false;
  let isWanted = false;
  async function run() {
    if (isRunning) { isWanted = true; return; }
    isRunning = true;
    try {
      const response = await fetch(location.href);
      if (response.ok) {
        const page = new DOMParser().parseFromString(await response.text(), "text/html");
        // Another tab has opened the demo, or left it.
        if (page.body.dataset.history !== document.body.dataset.history) location.reload();
        else apply(page);
      }
    } catch { /* the server has ended; the next event tries again */ }
    isRunning = false;
    if (isWanted) { isWanted = false; schedule(); }
  }
  function schedule() {
    clearTimeout(timer);
    timer = setTimeout(run, delay);
  }
  return schedule;
}

// Replaces parts of the page and keeps the focus on the same link.
export function replaceParts(page, selectors) {
  const focused = document.activeElement?.getAttribute("href");
  for (const selector of selectors) {
    const before = document.querySelector(selector), after = page.querySelector(selector);
    if (before && after && before.innerHTML !== after.innerHTML) before.replaceChildren(...after.childNodes);
  }
  if (focused) document.querySelector(`main a[href="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
}

connect(false);
