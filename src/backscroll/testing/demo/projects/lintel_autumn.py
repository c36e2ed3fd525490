"""Lintel, a checker of Markdown links in Rust with an npm wrapper in TypeScript: September to November."""

from backscroll.testing.claude_code import Call, tool_calls
from backscroll.testing.demo.projects import lintel_files as files
from backscroll.testing.demo.sample_history import SampleHistory, utc_time


def add_sessions(history: SampleHistory) -> None:
    """Add the sessions from anchors in other files to the unfinished check of redirects."""
    _checker(history)
    _npm_wrapper(history)
    _no_fixing(history)
    _comments_from_an_editor(history)
    _redirects(history)


def _checker(history: SampleHistory) -> None:
    session = history.cursor_cli_session(
        "lintel/checker", "Anchors in other files", utc_time(9, 10, "17:25"), model="gpt-5.2-codex"
    )
    session.prompt("now check other.md#anchor across files, and don't read a file twice for its anchors")
    session.todo(("Checker with a memory of anchors", "in_progress"), ("use it in main", "pending"))
    session.read("src/check.rs", "src/main.rs")
    session.edit(
        "src/check.rs",
        "/// The anchors that a file offers.\n",
        "/// Links of a file that name an anchor, each with the file it should be in.\n"
        "pub fn anchored(file: &Path) -> Vec<(PathBuf, Link)> {\n"
        "    let text = fs::read_to_string(file).unwrap_or_default();\n"
        '    let folder = file.parent().unwrap_or(Path::new("."));\n'
        "    let mut found = Vec::new();\n"
        "    for link in links(&text) {\n"
        "        if let Some((path, anchor)) = link.target.clone().split_once('#') {\n"
        "            let other = if path.is_empty() { file.to_path_buf() } else { folder.join(path) };\n"
        "            found.push((other, Link { line: link.line, target: anchor.to_string() }));\n"
        "        }\n"
        "    }\n"
        "    found\n"
        "}\n\n"
        "/// The anchors that a file offers.\n",
    )
    session.edit("src/check.rs", "use std::path::Path;\n", "use std::path::{Path, PathBuf};\n")
    session.compact(
        "Summary: lintel gets a Checker that remembers anchors. check::anchored is written; "
        "src/checker.rs and its use in main.rs are left. Mutex around the map, because eight threads "
        "share it."
    )
    session.prompt("go on with checker.rs")
    session.write("src/checker.rs", files.CHECKER)
    session.edit("src/main.rs", "mod check;\n", "mod check;\nmod checker;\n")
    session.edit(
        "src/main.rs",
        "fn report(files: &[PathBuf]) -> usize {",
        "fn report(checker: &checker::Checker, files: &[PathBuf]) -> usize {",
    )
    session.edit(
        "src/main.rs",
        "        for link in check::broken_links(file) {",
        "        for link in checker.check(file) {",
    )
    session.edit(
        "src/main.rs",
        "    let broken: usize = std::thread::scope(|scope| {\n"
        "        let workers: Vec<_> = files.chunks(share).map(|part| scope.spawn(move || "
        "report(part))).collect();\n",
        "    let checker = checker::Checker::default();\n"
        "    let known = &checker;\n"
        "    let broken: usize = std::thread::scope(|scope| {\n"
        "        let workers: Vec<_> = files.chunks(share).map(|part| scope.spawn(move || report(known, "
        "part))).collect();\n",
    )
    session.shell(
        "cargo test -q && cargo run -q -- ~/docs/index.md",
        f"test result: ok. 1 passed; 0 failed\n{history.home}/docs/index.md:31: instal",
    )
    session.reply(
        "Anchors across files are checked; each file's anchors are read once, behind a Mutex. It found a "
        "real one: `#instal` in index.md line 31."
    )
    session.commit_by_hand("Check anchors in other files", minutes=5)


def _npm_wrapper(history: SampleHistory) -> None:
    session = history.claude_session(
        "lintel/npm-wrapper",
        "Ship lintel on npm",
        utc_time(9, 29, "18:00"),
        version="2.1.262",
        model="claude-opus-5",
    )
    session.prompt(
        "The web people want `npx lintel-cli`. How do I ship a Rust binary on npm without a postinstall "
        "download?"
    )
    session.think("")
    session.run(
        tool_calls.web_search(
            "npm optionalDependencies platform binary",
            ["Publishing binaries on npm", "optionalDependencies and os/cpu fields"],
        )
    )
    session.reply(
        "One package per platform with `os` and `cpu` set, all of them `optionalDependencies` of a "
        "wrapper: npm installs only the one that fits. No postinstall script, so it also works with "
        "`--ignore-scripts`."
    )
    session.prompt("Write the wrapper in TypeScript.")
    session.write("npm/package.json", files.PACKAGE)
    session.write("npm/src/bin.ts", files.BIN)
    session.shell(
        "cd npm && npx tsc --noEmit",
        "src/bin.ts(2,27): error TS2307: Cannot find module 'node:child_process' or its type declarations.",
        code=2,
    )
    session.note(
        "tsc knows nothing of Node without @types/node; that and TypeScript itself become devDependencies."
    )
    session.edit(
        "npm/package.json",
        '  "bin": { "lintel": "dist/bin.js" },\n',
        '  "bin": { "lintel": "dist/bin.js" },\n  "devDependencies": { "@types/node": "^24.0.0", '
        '"typescript": "^5.9.0" },\n',
    )
    session.shell("cd npm && npm install --silent && npx tsc --noEmit")
    session.reply(
        "The wrapper resolves `@lintel/<platform>-<arch>` and passes arguments and exit code on; an "
        "unknown platform gives 2. Publishing the three platform packages is still to be done in CI."
    )
    session.commit("Add an npm wrapper")


def _no_fixing(history: SampleHistory) -> None:
    session = history.cursor_cli_session(
        "lintel/no-fix",
        "Should lintel fix links",
        utc_time(10, 15, "20:20"),
        model="claude-4.6-sonnet-thinking",
    )
    session.prompt(
        "someone asks for --fix: when exactly one file of that name exists elsewhere, rewrite the link. "
        "should I?"
    )
    session.think("A checker that writes needs backups, dry run, tests of every Markdown quirk.")
    session.reply(
        "I would not. Today lintel is safe to run anywhere because it never writes; with --fix every "
        "parsing shortcut (we split at `](`) becomes a way to damage a file. Printing a suggestion gives "
        "most of the use: `did you mean ../img/a.png?`"
    )
    session.prompt("convinced: lintel stays read-only. suggestion maybe in 0.3")
    session.reply("Noted: no --fix, a suggestion in 0.3. Nothing was changed.")


def _comments_from_an_editor(history: SampleHistory) -> None:
    session = history.cursor_cli_session(
        "lintel/doc-comments",
        "Document the modules",
        utc_time(10, 22, "07:35"),
        model="gpt-5.2-codex",
        is_acp=True,
    )
    session.prompt("Add a module comment to check.rs and slug.rs, one sentence each.")
    session.edit(
        "src/check.rs",
        "use std::fs;\n",
        "//! Finds the links of a Markdown file and whether they lead anywhere.\n\nuse std::fs;\n",
    )
    session.edit(
        "src/slug.rs",
        "/// The anchor of a heading",
        "//! Anchors from headings.\n\n/// The anchor of a heading",
    )
    session.reply("Done, one sentence each.")
    session.commit_by_hand("Say what the modules are for", minutes=2)


def _redirects(history: SampleHistory) -> None:
    session = history.claude_session(
        "lintel/redirects",
        "Follow redirects of external links",
        utc_time(11, 6, "19:48"),
        version="2.1.289",
        model="claude-opus-5",
    )
    session.prompt("Next: check http links too, opt-in with --external. Start with what counts as broken.")
    session.think("")
    session.reply(
        "Broken: 404, 410, no such host. Not broken but worth a warning: 301 and 308, which say the link "
        "has moved for good. 429 and 503 say nothing about the link: honour Retry-After once, then skip."
    )
    session.prompt("308 as a warning, yes. Begin with the classification, no network code yet.")
    session.write(
        "src/external.rs",
        "/// What the answer to an external link says about the link.\n"
        "#[derive(Debug, PartialEq)]\n"
        "pub enum Verdict {\n    Fine,\n    Moved,\n    Broken,\n    Unknown,\n}\n\n"
        "pub fn verdict(status: u16) -> Verdict {\n"
        "    match status {\n"
        "        200..=299 => Verdict::Fine,\n"
        "        301 | 308 => Verdict::Moved,\n"
        "        404 | 410 => Verdict::Broken,\n"
        "        _ => Verdict::Unknown,\n"
        "    }\n"
        "}\n",
    )
    session.queue("and 451 counts as unknown please")
    session.edit("src/main.rs", "mod checker;\n", "mod checker;\nmod external;\n")
    # The computer was closed during the tests, so the call has no result.
    unfinished = Call("Bash", {"command": "cargo test -q external"})
    session.transcript.assistant("Running what is there so far.", tools=[unfinished], model=session.model)
