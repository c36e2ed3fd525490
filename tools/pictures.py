"""Regenerate docs/pictures from the demo history: `make pictures`.

The terminal UI is drawn by Textual, web pages and the exported page by headless Chromium. The diagrams of the
data flow and of the schema are drawn here, the schema from the archive's own foreign keys.
"""

import asyncio
import os
import re
import shutil
import sqlite3
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from threading import Thread

import uvicorn
from playwright.sync_api import sync_playwright

from backscroll.config import NamedRoot
from backscroll.history.demo import write_demo
from backscroll.history.history import History
from backscroll.tui.app import Backscroll
from backscroll.web.app import create_app

PICTURES = Path(__file__).parent.parent / "docs" / "pictures"
CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
FONT = "ui-sans-serif, system-ui, Helvetica, Arial, sans-serif"
TUI_SIZE = (120, 32)
PAGE_SIZE = (1100, 900)
TIMEOUT_SECONDS = 30.0


def main() -> None:
    os.environ["TZ"] = "UTC"  # the terminal UI shows local times
    time.tzset()
    PICTURES.mkdir(exist_ok=True)
    with _demo_folder() as demo, TemporaryDirectory() as folder:
        written = write_demo(demo)
        roots = [NamedRoot(source, Path(path)) for source, path in written.roots.items()]

        def open_history() -> History:
            return History(home=demo / "archive", roots=roots)

        with open_history() as history:
            history.sync()
            _draw_schema(history.archive_path)
            _draw_page(history, Path(folder))
        _draw_web(open_history)
        asyncio.run(_draw_tui(open_history))
    _draw_data_flow()


@contextmanager
def _demo_folder() -> Iterator[Path]:
    """Yield a fixed path, because it is visible in the pictures."""
    folder = Path(gettempdir(), "demo")
    if folder.exists():
        sys.exit(f"{folder} exists. Move it away and run again.")
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


async def _draw_tui(open_history) -> None:  # type: ignore[no-untyped-def]
    app = Backscroll(open_history, welcome=lambda history: [], auto_sync=False, theme="dark")
    async with app.run_test(size=TUI_SIZE) as pilot:
        await _wait(pilot, lambda: "503 in the night" in _screen(app))
        await pilot.press("j", "j", "j")
        await _wait(pilot, lambda: "On 25 October" in _screen(app))
        await pilot.press("tab", "right_square_bracket", "right_square_bracket")
        while (block := app.transcript.current_block) is None or not block.heading.startswith("Bash"):
            await pilot.press("down")
        await pilot.press("enter")
        await _wait(pilot, lambda: "1 failed, 10 passed" in _screen(app))
        svg = app.export_screenshot(title="backscroll tui")
    # The template of the exporter loads a web font. The pictures load nothing.
    svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)
    svg = re.sub(r"<!--.*?-->\s*", "", svg, flags=re.DOTALL)
    svg = svg.replace("Fira Code", "ui-monospace, Menlo, Consolas, DejaVu Sans Mono")
    (PICTURES / "tui.svg").write_text(svg, encoding="utf-8")


async def _wait(pilot, is_ready) -> None:  # type: ignore[no-untyped-def]
    end = asyncio.get_running_loop().time() + TIMEOUT_SECONDS
    while not is_ready():
        if asyncio.get_running_loop().time() > end:
            sys.exit("The terminal UI did not show the expected text in time.")
        await pilot.pause(0.05)


def _screen(app: Backscroll) -> str:
    strips = app.screen._compositor.render_strips()
    return "\n".join("".join(segment.text for segment in strip) for strip in strips)


def _draw_page(history: History, folder: Path) -> None:
    page = folder / "session.html"
    page.write_text("".join(history.export_session("a4a9482e", "html")), encoding="utf-8")
    _draw_pages([("export.png", page.as_uri(), PAGE_SIZE)])


WEB_PAGES = (  # picture, path, size
    ("web-session.png", "/sessions/claude-code:a4a9482e-facd-4d33-bfe9-ce4b37bd7124", (1360, 860)),
    ("web-home.png", "/", (1400, 1000)),
    ("web-sessions.png", "/sessions", (1280, 860)),
    ("web-search.png", "/search?q=clock", (1400, 760)),
)


def _draw_web(open_history) -> None:  # type: ignore[no-untyped-def]
    """Draw pages of the web app, served by a thread."""
    app = create_app(open_history, token="", auto_sync=False)  # without a cookie, the browser has this token
    config = uvicorn.Config(app, port=0, log_level="critical", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    listener = config.bind_socket()
    thread = Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    address = f"http://127.0.0.1:{listener.getsockname()[1]}"
    try:
        _draw_pages((picture, address + path, size) for picture, path, size in WEB_PAGES)
    finally:
        server.should_exit = True
        thread.join()


def _draw_pages(pages: Iterable[tuple[str, str, tuple[int, int]]]) -> None:
    """Draw pages in the system's Chromium: name of the picture, address and size."""
    browser = next(filter(None, map(shutil.which, CHROMIUM)), None)
    if browser is None:
        print("Skipped the web pages: no Chromium found. Install the package 'chromium'.", file=sys.stderr)
        return
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(
            executable_path=browser, args=["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
        )
        for picture, address, (width, height) in pages:
            page = opened.new_page(viewport={"width": width, "height": height})
            page.goto(address)
            page.locator("#theme").wait_for()  # shown by the scripts
            page.screenshot(path=PICTURES / picture)
            page.close()
        opened.close()


BOX = (168, 46)
FLOW = (  # column, row, title, subtitle
    (0, 0, "tool files", "transcripts, databases"),
    (1, 0, "readers", "JSONL, SQLite, protobuf"),
    (2, 0, "sources", "one package per tool"),
    (3, 0, "ingest", "only what changed"),
    (3, 1, "archive", "SQLite, system of record"),
    (3, 2, "index", "full text, derived"),
    (2, 1, "history", "the Python library"),
    (1, 1, "render", "text, Markdown, HTML, JSON"),
    (0, 1, "cli · mcp · tui · web", "interfaces"),
    (2, 2, "search", "words, patterns, recall"),
)
FLOW_ARROWS = ((0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (4, 6), (6, 7), (7, 8), (5, 9), (9, 6))


def _draw_data_flow() -> None:
    places = {index: (24 + column * 214, 24 + row * 96) for index, (column, row, _, _) in enumerate(FLOW)}
    parts = [
        _box(*places[index], title, subtitle, *BOX) for index, (_, _, title, subtitle) in enumerate(FLOW)
    ]
    parts += [_arrow(places[start], places[end]) for start, end in FLOW_ARROWS]
    (PICTURES / "data-flow.svg").write_text(_svg(860, 290, parts), encoding="utf-8")


def _box(x: int, y: int, title: str, subtitle: str, width: int, height: int) -> str:
    return (
        f'<rect class="box" x="{x}" y="{y}" width="{width}" height="{height}" rx="6"/>'
        f'<text class="title" x="{x + width / 2}" y="{y + 20}">{title}</text>'
        f'<text class="sub" x="{x + width / 2}" y="{y + 36}">{subtitle}</text>'
    )


def _arrow(start: tuple[int, int], end: tuple[int, int]) -> str:
    width, height = BOX
    (x1, y1), (x2, y2) = start, end
    if y1 == y2:
        line = (x1 + width, y1 + height / 2, x2 - 4, y2 + height / 2)
        if x2 < x1:
            line = (x1, y1 + height / 2, x2 + width + 4, y2 + height / 2)
    else:
        down = y2 > y1
        line = (
            x1 + width / 2,
            y1 + (height if down else 0),
            x2 + width / 2,
            y2 - 4 if down else y2 + height + 4,
        )
    return '<line class="arrow" x1="{}" y1="{}" x2="{}" y2="{}"/>'.format(*line)


COLUMN_WIDTH, ROW_HEIGHT, TABLE_WIDTH = 256, 18, 232
SCHEMA_COLUMNS = (  # heading, and tables from top to bottom
    (
        "Sessions and annotations",
        ("cursor_sessions", "conversations", "subagent", "tag", "star", "note", "user_title"),
    ),
    ("Units and originals", ("unit", "source_event", "problem", "raw_segment", "raw_row", "blob_chunk")),
    ("Fragments", ("fragment", "subagent_link", "response", "edit")),
    ("Messages", ("message", "message_chunk", "message_update", "string")),
    ("Rollups", ("activity_rollup", "tool_rollup", "token_rollup")),
    ("Commits", ("edit_scan", "git_commit", "commit_link")),
)
MAX_COLUMNS_SHOWN = 8


def _draw_schema(archive: Path) -> None:
    db = sqlite3.connect(archive)
    parts, height = [], 0
    for index, (heading, tables) in enumerate(SCHEMA_COLUMNS):
        x, y = 20 + index * COLUMN_WIDTH, 46
        parts.append(f'<text class="heading" x="{x}" y="28">{heading}</text>')
        for table in tables:
            rows = db.execute(f"pragma table_info({table})").fetchall()
            targets = {row[3]: row[2] for row in db.execute(f"pragma foreign_key_list({table})")}
            names = [f"{row[1]} → {targets[row[1]]}" if row[1] in targets else row[1] for row in rows]
            hidden = len(names) - MAX_COLUMNS_SHOWN
            if hidden > 1:
                names = [*names[:MAX_COLUMNS_SHOWN], f"… {hidden} more"]
            box = 26 + len(names) * ROW_HEIGHT
            parts.append(f'<rect class="box" x="{x}" y="{y}" width="{TABLE_WIDTH}" height="{box}" rx="6"/>')
            parts.append(f'<text class="table" x="{x + 10}" y="{y + 18}">{table}</text>')
            parts += [
                f'<text class="column" x="{x + 10}" y="{y + 36 + line * ROW_HEIGHT}">{name}</text>'
                for line, name in enumerate(names)
            ]
            y += box + 14
        height = max(height, y)
    db.close()
    (PICTURES / "schema.svg").write_text(
        _svg(20 + len(SCHEMA_COLUMNS) * COLUMN_WIDTH, height + 6, parts), encoding="utf-8"
    )


def _svg(width: int, height: int, parts: list[str]) -> str:
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="{FONT}">
<style>
rect.back {{ fill: #ffffff }} rect.box {{ fill: #f5f7fa; stroke: #9aa5b1 }}
text {{ fill: #1f2933; text-anchor: middle }} .title {{ font-size: 14px; font-weight: 600 }}
.sub {{ font-size: 11px; fill: #52606d }} .table {{ font-size: 13px; font-weight: 600; text-anchor: start }}
.heading {{ font-size: 14px; fill: #52606d; text-anchor: start }}
.column {{ font-size: 12px; fill: #3e4c59; text-anchor: start }}
.arrow {{ stroke: #52606d; stroke-width: 1.5; marker-end: url(#tip) }}
</style>
<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">
<path d="M0 0L8 4L0 8z" fill="#52606d"/></marker></defs>
<rect class="back" width="{width}" height="{height}"/>
{chr(10).join(parts)}
</svg>
"""


if __name__ == "__main__":
    main()
