// The health page: follows a running backup, and a sync.
import { onChange, refresher, replaceParts } from "./live.js";

const POLL_MS = 700;
const refresh = refresher((page) => {
  replaceParts(page, ["#sources", "#problems", "#events", "#archive", "#backups"]);
  const isRunning = page.getElementById("backups").hasAttribute("data-running");
  document.getElementById("backups").toggleAttribute("data-running", isRunning);
  follow();
}, POLL_MS);

function follow() {
  if (document.querySelector("#backups[data-running]")) refresh();
}

onChange(refresh);
follow();
