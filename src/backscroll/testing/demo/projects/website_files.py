"""Complete files that the website's sessions write."""

BUILD = """\
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { layout } from "./layout.ts";

export interface Note {
  slug: string;
  title: string;
  date: string;
  body: string;
}

/** Notes are Markdown files whose first line is the title and whose second is the date. */
export function read(folder: string): Note[] {
  return readdirSync(folder)
    .filter((name) => name.endsWith(".md"))
    .map((name) => {
      const [title, date, ...rest] = readFileSync(`${folder}/${name}`, "utf8").split("\\n");
      const body = rest.join("\\n").trim();
      return { slug: name.slice(0, -3), title: title.replace(/^# /, ""), date, body };
    })
    .sort((a, b) => b.date.localeCompare(a.date));
}

mkdirSync("public", { recursive: true });
for (const note of read("notes")) {
  writeFileSync(`public/${note.slug}.html`, layout(note.title, note.body, note.date));
}
"""

LAYOUT = """\
export function layout(title: string, body: string, date: string): string {
  return `<!doctype html>
<html lang="en">
<link rel="stylesheet" href="style.css">
<title>${title}</title>
<main>
<h1>${title}</h1>
<p class="date">${date}</p>
${body}
</main>
</html>`;
}
"""

STYLE = """\
main {
  max-width: 38rem;
  margin: 2rem auto;
  font-family: Georgia, serif;
}

.gallery {
  display: grid;
  grid-template-columns: repeat(3, 16rem);
  gap: 1rem;
}
"""

NOTE = """\
# Why the quay has two clocks
2026-07-18

One shows the time, the other the time of the ferry.

![The clocks](img/clock.png)
"""

FEED = """\
import { writeFileSync } from "node:fs";
import { read } from "./build.ts";

const HOME = "https://quay.example";

/** RSS wants dates as mail has them. */
export function mailDate(iso: string): string {
  return new Date(`${iso}T00:00:00Z`).toUTCString();
}

function item(title: string, slug: string, date: string): string {
  return `<item><title>${title}</title><link>${HOME}/${slug}.html</link><pubDate>${date}</pubDate></item>`;
}

const newest = read("notes").slice(0, 20);
const items = newest.map((note) => item(note.title, note.slug, mailDate(note.date))).join("\\n");
const head = `<title>Quay notes</title><link>${HOME}</link>`;

writeFileSync("public/feed.xml", `<rss version="2.0"><channel>${head}\\n${items}\\n</channel></rss>`);
"""

READING = """\
const WORDS_PER_MINUTE = 200;

/** Lesezeit in Minuten, nie weniger als eine. */
export function readingTime(text: string): number {
  return Math.max(1, Math.round(text.split(/\\s+/).length / WORDS_PER_MINUTE));
}
"""
