"""Lintel, a checker of Markdown links in Rust with an npm wrapper in TypeScript: September to November."""

from backscroll.testing.claude_code import Call, tool_calls
from backscroll.testing.demo.projects import linter_files as files
from backscroll.testing.demo.story import Story, day

__all__ = ["tell"]


def tell(story: Story) -> None:
    """From anchors in other files to redirects, which are not finished."""
    _checker(story)
    _npm_wrapper(story)
    _no_fixing(story)
    _comments_from_an_editor(story)
    _redirects(story)


def _checker(story: Story) -> None:
    scene = story.terminal(
        "lintel/checker", "Anchors in other files", day(9, 10, "17:25"), model="gpt-5.2-codex"
    )
    scene.say("now check other.md#anchor across files, and don't read a file twice for its anchors")
    scene.todo(("Checker with a memory of anchors", "in_progress"), ("use it in main", "pending"))
    scene.read("src/check.rs", "src/main.rs")
    scene.edit(
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
    scene.edit("src/check.rs", "use std::path::Path;\n", "use std::path::{Path, PathBuf};\n")
    scene.compact(
        "Summary: lintel gets a Checker that remembers anchors. check::anchored is written; "
        "src/checker.rs and its use in main.rs are left. Mutex around the map, because eight threads "
        "share it."
    )
    scene.say("go on with checker.rs")
    scene.write("src/checker.rs", files.CHECKER)
    scene.edit("src/main.rs", "mod check;\n", "mod check;\nmod checker;\n")
    scene.edit(
        "src/main.rs",
        "fn report(files: &[PathBuf]) -> usize {",
        "fn report(checker: &checker::Checker, files: &[PathBuf]) -> usize {",
    )
    scene.edit(
        "src/main.rs",
        "        for link in check::broken_links(file) {",
        "        for link in checker.check(file) {",
    )
    scene.edit(
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
    scene.shell(
        "cargo test -q && cargo run -q -- ~/docs/index.md",
        f"test result: ok. 1 passed; 0 failed\n{story.home}/docs/index.md:31: instal",
    )
    scene.reply(
        "Anchors across files are checked; each file's anchors are read once, behind a Mutex. It found a "
        "real one: `#instal` in index.md line 31."
    )
    scene.later("Check anchors in other files", minutes=5)


def _npm_wrapper(story: Story) -> None:
    scene = story.claude(
        "lintel/npm-wrapper",
        "Ship lintel on npm",
        day(9, 29, "18:00"),
        version="2.1.262",
        model="claude-opus-5",
    )
    scene.say(
        "The web people want `npx lintel-cli`. How do I ship a Rust binary on npm without a postinstall "
        "download?"
    )
    scene.think("")
    scene.run(
        tool_calls.web_search(
            "npm optionalDependencies platform binary",
            ["Publishing binaries on npm", "optionalDependencies and os/cpu fields"],
        )
    )
    scene.reply(
        "One package per platform with `os` and `cpu` set, all of them `optionalDependencies` of a "
        "wrapper: npm installs only the one that fits. No postinstall script, so it also works with "
        "`--ignore-scripts`."
    )
    scene.say("Write the wrapper in TypeScript.")
    scene.write("npm/package.json", files.PACKAGE)
    scene.write("npm/src/bin.ts", files.BIN)
    scene.shell(
        "cd npm && npx tsc --noEmit",
        "src/bin.ts(2,27): error TS2307: Cannot find module 'node:child_process' or its type declarations.",
        code=2,
    )
    scene.note(
        "tsc knows nothing of Node without @types/node; that and TypeScript itself become devDependencies."
    )
    scene.edit(
        "npm/package.json",
        '  "bin": { "lintel": "dist/bin.js" },\n',
        '  "bin": { "lintel": "dist/bin.js" },\n  "devDependencies": { "@types/node": "^24.0.0", '
        '"typescript": "^5.9.0" },\n',
    )
    scene.shell("cd npm && npm install --silent && npx tsc --noEmit")
    scene.reply(
        "The wrapper resolves `@lintel/<platform>-<arch>` and passes arguments and exit code on; an "
        "unknown platform gives 2. Publishing the three platform packages is still to be done in CI."
    )
    scene.commit("Add an npm wrapper")


def _no_fixing(story: Story) -> None:
    scene = story.terminal(
        "lintel/no-fix", "Should lintel fix links", day(10, 15, "20:20"), model="claude-4.6-sonnet-thinking"
    )
    scene.say(
        "someone asks for --fix: when exactly one file of that name exists elsewhere, rewrite the link. "
        "should I?"
    )
    scene.think("A checker that writes needs backups, dry run, tests of every Markdown quirk.")
    scene.reply(
        "I would not. Today lintel is safe to run anywhere because it never writes; with --fix every "
        "parsing shortcut (we split at `](`) becomes a way to damage a file. Printing a suggestion gives "
        "most of the use: `did you mean ../img/a.png?`"
    )
    scene.say("convinced: lintel stays read-only. suggestion maybe in 0.3")
    scene.reply("Noted: no --fix, a suggestion in 0.3. Nothing was changed.")


def _comments_from_an_editor(story: Story) -> None:
    scene = story.terminal(
        "lintel/doc-comments",
        "Document the modules",
        day(10, 22, "07:35"),
        model="gpt-5.2-codex",
        is_acp=True,
    )
    scene.say("Add a module comment to check.rs and slug.rs, one sentence each.")
    scene.edit(
        "src/check.rs",
        "use std::fs;\n",
        "//! Finds the links of a Markdown file and whether they lead anywhere.\n\nuse std::fs;\n",
    )
    scene.edit(
        "src/slug.rs",
        "/// The anchor of a heading",
        "//! Anchors from headings.\n\n/// The anchor of a heading",
    )
    scene.reply("Done, one sentence each.")
    scene.later("Say what the modules are for", minutes=2)


def _redirects(story: Story) -> None:
    scene = story.claude(
        "lintel/redirects",
        "Follow redirects of external links",
        day(11, 6, "19:48"),
        version="2.1.289",
        model="claude-opus-5",
    )
    scene.say("Next: check http links too, opt-in with --external. Start with what counts as broken.")
    scene.think("")
    scene.reply(
        "Broken: 404, 410, no such host. Not broken but worth a warning: 301 and 308, which say the link "
        "has moved for good. 429 and 503 say nothing about the link: honour Retry-After once, then skip."
    )
    scene.say("308 as a warning, yes. Begin with the classification, no network code yet.")
    scene.write(
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
    scene.queue("and 451 counts as unknown please")
    scene.edit("src/main.rs", "mod checker;\n", "mod checker;\nmod external;\n")
    # The machine was closed while the tests ran: the call has no answer.
    unfinished = Call("Bash", {"command": "cargo test -q external"})
    scene.transcript.assistant("Running what is there so far.", tools=[unfinished], model=scene.model)
