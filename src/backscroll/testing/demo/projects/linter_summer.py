"""Lintel, a checker of Markdown links in Rust: July and August."""

from backscroll.testing import cursor
from backscroll.testing.demo.projects import linter_files as files
from backscroll.testing.demo.story import Story, day

__all__ = ["tell"]


def tell(story: Story) -> None:
    """From the first check to one that is green on Windows."""
    _first_check(story)
    _anchors(story)
    _exit_codes(story)
    _threads(story)
    _windows_paths(story)


def _first_check(story: Story) -> None:
    scene = story.terminal(
        "lintel/first-check", "Check Markdown links", day(7, 14, "19:02"), model="composer-2"
    )
    scene.say(
        "start a rust cli called lintel: takes markdown files, prints links to files that don't exist as "
        "file:line: target. no dependencies"
    )
    scene.write("Cargo.toml", files.CARGO)
    scene.write("src/main.rs", files.MAIN)
    scene.write("src/check.rs", files.CHECK)
    scene.write(".gitignore", "/target\n")
    scene.shell("printf '[a](b.md)\\n' > /tmp/x.md && cargo run -q -- /tmp/x.md", "/tmp/x.md:1: b.md", code=1)
    scene.reply(
        "It works without a Markdown parser: split at `](`. That misses reference links `[a][b]`; I left "
        "them out because none of your files use them."
    )
    scene.later("Check Markdown links", minutes=4)


def _anchors(story: Story) -> None:
    scene = story.terminal("lintel/anchors", "Slugs for anchors", day(7, 17, "18:40"), model="composer-2")
    scene.say(
        "links to #headings should be checked too. what's the rule for turning a heading into an anchor?"
    )
    scene.call(
        "WebSearch",
        {"query": "markdown heading anchor slug algorithm"},
        "lower case, remove punctuation, replace spaces by hyphens; two blanks give two hyphens",
    )
    scene.think("'a & b' gives a--b: the ampersand goes, both blanks stay.")
    scene.write("src/slug.rs", files.SLUG)
    scene.edit("src/main.rs", "mod check;\n", "mod check;\nmod slug;\n")
    scene.edit(
        "src/check.rs",
        "fn exists(folder: &Path, target: &str) -> bool {",
        "/// The anchors that a file offers.\n"
        "pub fn anchors(file: &Path) -> Vec<String> {\n"
        "    let text = fs::read_to_string(file).unwrap_or_default();\n"
        "    text.lines().filter(|line| line.starts_with('#')).map(|line| "
        "slug(line.trim_start_matches('#'))).collect()\n"
        "}\n\n"
        "fn exists(folder: &Path, target: &str) -> bool {",
    )
    scene.edit("src/check.rs", "use std::path::Path;\n", "use std::path::Path;\n\nuse crate::slug::slug;\n")
    scene.shell("cargo test -q", "running 1 test\n.\ntest result: ok. 1 passed; 0 failed")
    scene.reply(
        "Anchors follow the forges' rule, doubled hyphens included. Duplicate headings get `-1`, `-2` "
        "there; that is not handled yet."
    )
    scene.later("Make anchors from headings", minutes=8)


def _exit_codes(story: Story) -> None:
    scene = story.claude(
        "lintel/exit-codes",
        "Exit codes and JSON",
        day(7, 24, "20:10"),
        version="2.1.231",
        model="claude-sonnet-5",
    )
    scene.say("CI needs to tell 'broken links' from 'lintel itself failed'. Which exit codes? And a --json.")
    scene.read("src/main.rs")
    scene.reply(
        "0: all links lead somewhere. 1: broken links. 2: wrong usage or a file that cannot be read. That "
        "is what grep does, so scripts already expect it."
    )
    answered = scene.transcript.leaf
    scene.say("Use 64 for usage, like sysexits.")
    scene.reply("64 would work, but nobody in CI tests for it, and 2 is what people know.")
    scene.transcript.branch_from(answered)  # the prompt is taken back and put another way
    scene.say("Like grep, good. Do the codes now, JSON later when somebody needs it.")
    scene.edit(
        "src/main.rs",
        "    let mut broken = 0;\n",
        "    if let Some(missing) = files.iter().find(|file| !file.is_file()) {\n"
        '        eprintln!("lintel: cannot read {}", missing.display());\n'
        "        std::process::exit(2);\n"
        "    }\n"
        "    let mut broken = 0;\n",
    )
    scene.shell("cargo run -q -- nothing.md; echo $?", "lintel: cannot read nothing.md\n2")
    scene.reply("Unreadable files give 2, broken links 1. `--json` is not written.")
    scene.commit("Tell broken links from failure by the exit code")


def _threads(story: Story) -> None:
    scene = story.terminal(
        "lintel/threads", "Check files in parallel", day(8, 6, "19:15"), model="claude-4.6-sonnet-thinking"
    )
    scene.say("docs repo has 2,300 files, takes 11 s. parallel? rayon, tokio or plain threads?")
    scene.delegate(
        "Measure the candidates",
        "Build lintel with rayon, tokio and std::thread::scope and report run time and binary size.",
        "rayon 1.9 s, 1.6 MB; tokio 2.0 s, 6.8 MB; std::thread::scope with 8 threads 2.0 s, 1.1 MB.",
        cursor.tool(
            "Shell", {"command": "cargo build --release && ls -l target/release/lintel"}, "1.1M lintel"
        ),
    )
    scene.reply(
        "Plain threads: `std::thread::scope` with 8 workers takes 2.0 s and the binary stays at 1.1 MB; "
        "tokio would make it 6.8 MB for no gain, since this is file reading and not networking. rayon is "
        "a tenth faster and the first dependency."
    )
    scene.say("plain threads. no dependency is worth 0.1 s")
    scene.edit(
        "src/main.rs",
        "    let mut broken = 0;\n"
        "    for file in &files {\n"
        "        for link in check::broken_links(file) {\n"
        '            println!("{}:{}: {}", file.display(), link.line, link.target);\n'
        "            broken += 1;\n"
        "        }\n"
        "    }\n",
        "    let share = files.len().div_ceil(WORKERS).max(1);\n"
        "    let broken: usize = std::thread::scope(|scope| {\n"
        "        let workers: Vec<_> = files.chunks(share).map(|part| scope.spawn(move || "
        "report(part))).collect();\n"
        "        workers.into_iter().map(|worker| worker.join().unwrap()).sum()\n"
        "    });\n",
    )
    scene.edit(
        "src/main.rs",
        "fn main() {",
        "const WORKERS: usize = 8;\n\n"
        "/// Print the broken links of some files. Returns how many there are.\n"
        "fn report(files: &[PathBuf]) -> usize {\n"
        "    let mut broken = 0;\n"
        "    for file in files {\n"
        "        for link in check::broken_links(file) {\n"
        '            println!("{}:{}: {}", file.display(), link.line, link.target);\n'
        "            broken += 1;\n"
        "        }\n"
        "    }\n"
        "    broken\n"
        "}\n\n"
        "fn main() {",
    )
    scene.shell("time cargo run -q --release -- $(git -C ~/docs ls-files '*.md')", "real 0m2.031s")
    scene.reply(
        "11 s became 2.0 s. The order of the output now depends on the threads' parts, but within a file "
        "it is kept."
    )
    scene.later("Check files with eight threads", minutes=6)


def _windows_paths(story: Story) -> None:
    scene = story.claude(
        "lintel/windows-paths",
        "CI fails on Windows",
        day(8, 21, "06:30"),
        version="2.1.238",
        model="claude-opus-4-8",
    )
    scene.say(
        "CI is red on windows only. Output:\n\nthread 'main' panicked: docs\\guide.md:14: "
        "../img/a%20b.png\n\nThe file exists, its name has a blank."
    )
    scene.grep("folder.join", 'src/check.rs:45:    target.contains("://") || folder.join(target).exists()')
    scene.think("%20 is not decoded at all. Linux only looks green because the docs job does not run there.")
    scene.reply(
        "Two things: `%20` is never decoded, on no system; Linux passes only because the docs job is not "
        "run there. And anchors are not cut off before looking for the file."
    )
    scene.edit(
        "src/check.rs",
        '    target.contains("://") || folder.join(target).exists()\n',
        '    let path = target.replace("%20", " ").split(\'#\').next().unwrap_or_default();\n'
        '    target.contains("://") || path.is_empty() || folder.join(path).exists()\n',
    )
    scene.shell(
        "cargo test -q",
        "error[E0716]: temporary value dropped while borrowed\n  --> src/check.rs:45:16\n   |\n45 |     "
        'let path = target.replace("%20", " ").split(\'#\').next().unwrap_or_default();',
        code=101,
    )
    scene.note("The borrow checker is right: `split` borrows from a string that nobody keeps. Bind it first.")
    scene.edit(
        "src/check.rs",
        '    let path = target.replace("%20", " ").split(\'#\').next().unwrap_or_default();\n',
        '    let decoded = target.replace("%20", " ");\n'
        "    let path = decoded.split('#').next().unwrap_or_default();\n",
    )
    scene.shell("cargo test -q", "running 1 test\n.\ntest result: ok. 1 passed; 0 failed")
    scene.reply(
        "Green here. Only `%20` is decoded; other escapes would need a table, and I found none in the docs."
    )
    scene.commit("Decode blanks in link targets")
