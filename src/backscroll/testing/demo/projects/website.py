"""A personal website, built by a few files of TypeScript."""

from backscroll.testing import cursor
from backscroll.testing.claude_code import Call, Prompt, tool_calls
from backscroll.testing.demo.claude_session import SubagentTask
from backscroll.testing.demo.projects import website_files as files
from backscroll.testing.demo.sample_history import SampleHistory, utc_time
from backscroll.testing.demo.session import session_id


def add_sessions(history: SampleHistory) -> None:
    """Add the sessions from the first prompts to a page about the year."""
    _only_prompts(history)
    _build_script(history)
    _feed(history)
    _german(history)
    _dark(history)
    _narrow_screens(history)
    _japanese(history)
    _no_comments(history)
    _dead_links(history)
    _year_page(history)


def _only_prompts(history: SampleHistory) -> None:
    """Add prompts of a deleted session. Claude Code deletes old transcripts but keeps the prompt history."""
    deleted_id = session_id("website/static-or-not")
    project = history.repositories["website"].path
    history.orphaned_prompts = [
        Prompt(
            "static site or a server for a personal page with forty notes?",
            utc_time(7, 7, "19:30"),
            project,
            deleted_id,
        ),
        Prompt("ok static. which generator, or none at all?", utc_time(7, 7, "19:41"), project, deleted_id),
        Prompt("none, I want to understand every line of it", utc_time(7, 7, "19:52"), project, deleted_id),
    ]


def _build_script(history: SampleHistory) -> None:
    session = history.cursor_session(
        "website/build-script",
        "A build script without a framework",
        utc_time(7, 18, "10:00"),
        model="composer-2",
    )
    session.prompt(
        "Personal site: notes in Markdown, first line title, second line date. A build script in "
        "TypeScript that node runs directly, no framework."
    )
    session.write("build.ts", files.BUILD)
    session.write("layout.ts", files.LAYOUT)
    session.write("style.css", files.STYLE)
    session.write("notes/two-clocks.md", files.NOTE)
    session.shell("node build.ts && ls public", "two-clocks.html")
    session.reply(
        "Node 24 runs TypeScript by stripping types, so there is no compiler step. Bodies go in as they "
        "are: Markdown to HTML is not done yet."
    )
    session.commit_by_hand("Build the site from notes", minutes=10)


def _feed(history: SampleHistory) -> None:
    session = history.claude_session(
        "website/rss",
        "Add an RSS feed",
        utc_time(7, 25, "09:10"),
        version="2.0.64",
        model="claude-sonnet-4-5-20250929",
    )
    session.prompt("Add an RSS feed, newest twenty notes.")
    session.delegate(
        SubagentTask(
            "Check what readers need",
            "Which elements does RSS 2.0 require in channel and item, and in which format is pubDate?",
            "channel: title, link, description; item: title or description; pubDate as RFC 822, e.g. Sat, "
            "18 Jul 2026 00:00:00 GMT.",
            [tool_calls.web_search("RSS 2.0 required elements", ["RSS 2.0 specification"])],
            kind="general-purpose",
            model="claude-haiku-4-5-20251001",
        )
    )
    session.write("feed.ts", files.FEED)
    session.shell("node feed.ts && xmllint --noout public/feed.xml && echo valid", "valid")
    session.reply(
        "public/feed.xml has the newest twenty notes with mail-style dates. `description` of the channel "
        "is missing; validators warn, readers do not care."
    )
    session.commit("Add an RSS feed")


def _german(history: SampleHistory) -> None:
    session = history.cursor_session(
        "website/lesezeit",
        "Lesezeit und Datumsformat",
        utc_time(8, 2, "16:45"),
        model="claude-4.6-sonnet-thinking",
    )
    session.prompt(
        "Ich möchte unter jeder Notiz die Lesezeit sehen, und das Datum auf Deutsch, also „18. Juli 2026“ "
        "statt 2026-07-18."
    )
    session.think("Intl.DateTimeFormat mit de-DE, Zeitzone UTC, sonst verschiebt sich der Tag.")
    session.write("reading.ts", files.READING)
    session.edit(
        "layout.ts",
        "export function layout(title: string, body: string, date: string): string {\n",
        'import { readingTime } from "./reading.ts";\n\n'
        'const GERMAN = new Intl.DateTimeFormat("de-DE", { dateStyle: "long", timeZone: "UTC" });\n\n'
        "export function layout(title: string, body: string, date: string): string {\n",
    )
    session.edit(
        "layout.ts",
        '<p class="date">${date}</p>\n',
        '<p class="date">${GERMAN.format(new Date(date))}, ${readingTime(body)} Min. Lesezeit</p>\n',
    )
    session.reply(
        "Fertig. Gerechnet wird mit 200 Wörtern pro Minute, mindestens eine Minute. Die Zeitzone ist fest "
        "auf UTC gesetzt, sonst wäre westlich von Greenwich der 17. Juli daraus geworden."
    )
    session.prompt("Warum nicht 250 Wörter?")
    session.reply(
        "Deutsche Wörter sind länger als englische; für deutsche Prosa werden meist 180 bis 220 Wörter "
        "pro Minute angegeben. 200 liegt in der Mitte."
    )
    session.commit_by_hand("Show reading time and German dates", minutes=6)


def _dark(history: SampleHistory) -> None:
    session = history.cursor_cli_session(
        "website/dark-mode", "Dark mode", utc_time(8, 16, "21:30"), model="composer-2"
    )
    session.prompt("dark mode, follow the system, no toggle, no javascript")
    session.edit(
        "style.css",
        "main {\n",
        ":root {\n  color-scheme: light dark;\n  background: light-dark(#f7f4ec, #16191c);\n  color: "
        "light-dark(#222, #d8d4c8);\n}\n\nmain {\n",
    )
    session.reply("`light-dark()` does it in one rule; browsers before 2024 show the light page.")
    session.commit_by_hand("Follow the system's dark mode", minutes=3)


def _narrow_screens(history: SampleHistory) -> None:
    session = history.cursor_session(
        "website/gallery-overflow",
        "Gallery overflows on phones",
        utc_time(9, 5, "11:12"),
        model="gpt-5.2-codex",
    )
    session.prompt_with_image(
        "On a phone (375 px) the gallery runs out of the page, see picture.",
        name="overflow",
        uuid="7b1c2d40-5a4e-4c3f-9d21-3f0a6b8e1c55",
        size=(375, 667),
    )
    session.grep("grid-template", "style.css:14:  grid-template-columns: repeat(3, 16rem);")
    session.reply(
        "Three fixed columns of 16rem need 800 px. `repeat(auto-fill, minmax(min(16rem, 100%), 1fr))` "
        "gives as many as fit; the inner `min` keeps a single column from overflowing below 16rem."
    )
    session.reject_edit("style.css", "repeat(3, 16rem)", "repeat(auto-fit, minmax(16rem, 1fr))")
    session.prompt("auto-fit stretches a lone picture over the whole width. auto-fill as you said.")
    session.edit("style.css", "repeat(3, 16rem)", "repeat(auto-fill, minmax(min(16rem, 100%), 1fr))")
    session.reply("auto-fill with the inner min. At 375 px there is one column, at 1200 px three.")
    session.commit_by_hand("Let the gallery fit on phones", minutes=2)


def _japanese(history: SampleHistory) -> None:
    session = history.claude_session(
        "website/ruby",
        "日本語のルビとフォント",
        utc_time(9, 26, "03:20"),
        version="2.1.260",
        model="claude-opus-5",
    )
    session.prompt("日本語のメモにふりがなを付けたい。「港《みなと》」と書いたら ruby タグに変換してほしい。")
    session.think("")
    session.read("layout.ts")
    session.write(
        "ruby.ts",
        "/** 「港《みなと》」のような書き方を ruby 要素にする。 */\n"
        "export function ruby(text: string): string {\n"
        '  return text.replace(/(\\p{Script=Han}+)《([^》]+)》/gu, "<ruby>$1<rt>$2</rt></ruby>");\n'
        "}\n",
    )
    session.edit(
        "layout.ts",
        'import { readingTime } from "./reading.ts";\n',
        'import { readingTime } from "./reading.ts";\nimport { ruby } from "./ruby.ts";\n',
    )
    session.edit("layout.ts", "${body}\n</main>", "${ruby(body)}\n</main>")
    session.reply(
        "漢字の直後の《》だけを変換します。"
        "ひらがなの後の《》はそのまま残るので、引用符として使っても壊れません。"
    )
    session.prompt("フォントは？ Georgia だと日本語が中国語の字形になることがある。")
    session.edit(
        "style.css",
        "font-family: Georgia, serif;",
        'font-family: Georgia, "Hiragino Mincho ProN", "Noto Serif JP", serif;',
    )
    session.reply(
        '日本語用の明朝体を Georgia の後に足しました。字形を確実にするには `lang="ja"` '
        "も必要ですが、ページ全体が en のままなのでこれは未解決です。"
    )
    session.commit("Add ruby and Japanese fonts")


def _no_comments(history: SampleHistory) -> None:
    session = history.cursor_session(
        "website/comments",
        "Comments under notes",
        utc_time(10, 11, "18:05"),
        model="claude-4.6-sonnet-thinking",
        is_archived=True,
    )
    session.prompt("Should I allow comments under notes? What would it take on a static site?")
    session.reply(
        "Three ways: a hosted service (tracks your readers), a small server of your own (spam is now your "
        "job), or mail. For forty notes with perhaps five comments a year I would put a mail link under "
        "each note."
    )
    session.prompt("Moderation is exactly what I don't want. No comments, not even mail.")
    session.reply("Then nothing is the right amount. I changed nothing.")


def _dead_links(history: SampleHistory) -> None:
    session = history.cursor_session(
        "website/dead-links",
        "Fix dead links found by lintel",
        utc_time(10, 30, "17:50"),
        model="claude-4.6-opus-thinking",
    )
    session.prompt("Run lintel over the notes and fix what it finds.")
    session.shell("lintel notes/*.md; echo $?", "notes/two-clocks.md:6: img/clock.png\n1")
    session.delegate(
        "Find the picture",
        "Where in the repository, or in its history, is clock.png?",
        "Nowhere; the note names img/clock.png but no commit ever contained it.",
        cursor.tool(
            "run_terminal_command_v2",
            {"command": "git log --all --oneline -- '*clock.png'"},
            {"output": "", "exitCode": 0},
        ),
    )
    session.reply(
        "There is one dead link, and the picture never was in the repository. I can remove the reference "
        "or you add the picture."
    )
    session.prompt("Remove it, and let the build fail on dead links from now on.")
    session.write("check.sh", "#!/bin/sh\n# Dead links stop the build.\nexec lintel notes/*.md\n")
    session.edit("notes/two-clocks.md", "\n![The clocks](img/clock.png)\n", "")
    session.reply("check.sh ends with lintel's own exit code, so 1 stops the build.")
    session.commit_by_hand("Stop the build on dead links", minutes=4)


def _year_page(history: SampleHistory) -> None:
    session = history.claude_session(
        "website/year-page",
        "A page about the year",
        utc_time(11, 10, "18:30"),
        version="2.1.289",
        model="claude-opus-5",
    )
    session.prompt(
        "I want a page about my year: notes per month, projects, numbers. Plan it, don't write yet."
    )
    session.think("")
    session.reply(
        "Proposal: one note `2026.md` generated from data. Per month: notes published and commits per "
        "project from `git log`. Numbers by hand: kilometres rowed. It should be written once in December "
        "and then never regenerated, so that it stays true."
    )
    session.run(
        Call(
            "TaskCreate",
            {"subject": "Collect commits per month"},
            "Task #1 created successfully",
            {"task": {"id": "1"}},
        )
    )
    session.run(
        Call(
            "TaskCreate",
            {"subject": "Write 2026.md in December"},
            "Task #2 created successfully",
            {"task": {"id": "2"}},
        )
    )
    session.prompt("Good, written once in December. Stop here, I'll come back to it.")
    session.reply("Two tasks are noted; no file was written.")
