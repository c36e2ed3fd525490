"""Lintel, a checker of Markdown links in Rust: July and August."""

from backscroll.testing import cursor
from backscroll.testing.demo.projects import lintel_files as files
from backscroll.testing.demo.sample_history import SampleHistory, utc_time


def add_sessions(history: SampleHistory) -> None:
    """Add the sessions from the first check to the fix for Windows paths."""
    _first_check(history)
    _anchors(history)
    _exit_codes(history)
    _threads(history)
    _windows_paths(history)


def _first_check(history: SampleHistory) -> None:
    session = history.cursor_cli_session(
        "lintel/first-check", "Check Markdown links", utc_time(7, 14, "19:02"), model="composer-2"
    )
    session.prompt(
        "start a rust cli called lintel: takes markdown files, prints links to files that don't exist as "
        "file:line: target. no dependencies"
    )
    session.write("Cargo.toml", files.CARGO)
    session.write("src/main.rs", files.MAIN)
    session.write("src/check.rs", files.CHECK)
    session.write(".gitignore", "/target\n")
    session.shell(
        "printf '[a](b.md)\\n' > /tmp/x.md && cargo run -q -- /tmp/x.md", "/tmp/x.md:1: b.md", code=1
    )
    session.reply(
        "It works without a Markdown parser: split at `](`. That misses reference links `[a][b]`; I left "
        "them out because none of your files use them."
    )
    session.commit_by_hand("Check Markdown links", minutes=4)


def _anchors(history: SampleHistory) -> None:
    session = history.cursor_cli_session(
        "lintel/anchors", "Slugs for anchors", utc_time(7, 17, "18:40"), model="composer-2"
    )
    session.prompt(
        "links to #headings should be checked too. what's the rule for turning a heading into an anchor?"
    )
    session.call(
        "WebSearch",
        {"query": "markdown heading anchor slug algorithm"},
        "lower case, remove punctuation, replace spaces by hyphens; two blanks give two hyphens",
    )
    session.think("'a & b' gives a--b: the ampersand goes, both blanks stay.")
    session.write("src/slug.rs", files.SLUG)
    session.edit("src/main.rs", "mod check;\n", "mod check;\nmod slug;\n")
    session.edit(
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
    session.edit("src/check.rs", "use std::path::Path;\n", "use std::path::Path;\n\nuse crate::slug::slug;\n")
    session.shell("cargo test -q", "running 1 test\n.\ntest result: ok. 1 passed; 0 failed")
    session.reply(
        "Anchors follow the forges' rule, doubled hyphens included. Duplicate headings get `-1`, `-2` "
        "there; that is not handled yet."
    )
    session.commit_by_hand("Make anchors from headings", minutes=8)


def _exit_codes(history: SampleHistory) -> None:
    session = history.claude_session(
        "lintel/exit-codes",
        "Exit codes and JSON",
        utc_time(7, 24, "20:10"),
        version="2.1.231",
        model="claude-sonnet-5",
    )
    session.prompt(
        "CI needs to tell 'broken links' from 'lintel itself failed'. Which exit codes? And a --json."
    )
    session.read("src/main.rs")
    session.reply(
        "0: all links lead somewhere. 1: broken links. 2: wrong usage or a file that cannot be read. That "
        "is what grep does, so scripts already expect it."
    )
    answered = session.transcript.leaf
    session.prompt("Use 64 for usage, like sysexits.")
    session.reply("64 would work, but nobody in CI tests for it, and 2 is what people know.")
    session.transcript.branch_from(answered)  # the user rewinds and rephrases the prompt
    session.prompt("Like grep, good. Do the codes now, JSON later when somebody needs it.")
    session.edit(
        "src/main.rs",
        "    let mut broken = 0;\n",
        "    if let Some(missing) = files.iter().find(|file| !file.is_file()) {\n"
        '        eprintln!("lintel: cannot read {}", missing.display());\n'
        "        std::process::exit(2);\n"
        "    }\n"
        "    let mut broken = 0;\n",
    )
    session.shell("cargo run -q -- nothing.md; echo $?", "lintel: cannot read nothing.md\n2")
    session.reply("Unreadable files give 2, broken links 1. `--json` is not written.")
    session.commit("Tell broken links from failure by the exit code")


def _threads(history: SampleHistory) -> None:
    session = history.cursor_cli_session(
        "lintel/threads",
        "Check files in parallel",
        utc_time(8, 6, "19:15"),
        model="claude-4.6-sonnet-thinking",
    )
    session.prompt("docs repo has 2,300 files, takes 11 s. parallel? rayon, tokio or plain threads?")
    session.delegate(
        "Measure the candidates",
        "Build lintel with rayon, tokio and std::thread::scope and report run time and binary size.",
        "rayon 1.9 s, 1.6 MB; tokio 2.0 s, 6.8 MB; std::thread::scope with 8 threads 2.0 s, 1.1 MB.",
        cursor.tool(
            "Shell", {"command": "cargo build --release && ls -l target/release/lintel"}, "1.1M lintel"
        ),
    )
    session.reply(
        "Plain threads: `std::thread::scope` with 8 workers takes 2.0 s and the binary stays at 1.1 MB; "
        "tokio would make it 6.8 MB for no gain, since this is file reading and not networking. rayon is "
        "a tenth faster and the first dependency."
    )
    session.prompt("plain threads. no dependency is worth 0.1 s")
    session.edit(
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
    session.edit(
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
    session.shell("time cargo run -q --release -- $(git -C ~/docs ls-files '*.md')", "real 0m2.031s")
    session.reply(
        "11 s became 2.0 s. The order of the output now depends on the threads' parts, but within a file "
        "it is kept."
    )
    session.commit_by_hand("Check files with eight threads", minutes=6)


def _windows_paths(history: SampleHistory) -> None:
    session = history.claude_session(
        "lintel/windows-paths",
        "CI fails on Windows",
        utc_time(8, 21, "06:30"),
        version="2.1.238",
        model="claude-opus-4-8",
    )
    session.prompt(
        "CI is red on windows only. Output:\n\nthread 'main' panicked: docs\\guide.md:14: "
        "../img/a%20b.png\n\nThe file exists, its name has a blank."
    )
    session.grep("folder.join", 'src/check.rs:45:    target.contains("://") || folder.join(target).exists()')
    session.think(
        "%20 is not decoded at all. Linux only looks green because the docs job does not run there."
    )
    session.reply(
        "Two things: `%20` is never decoded, on no system; Linux passes only because the docs job is not "
        "run there. And anchors are not cut off before looking for the file."
    )
    session.edit(
        "src/check.rs",
        '    target.contains("://") || folder.join(target).exists()\n',
        '    let path = target.replace("%20", " ").split(\'#\').next().unwrap_or_default();\n'
        '    target.contains("://") || path.is_empty() || folder.join(path).exists()\n',
    )
    session.shell(
        "cargo test -q",
        "error[E0716]: temporary value dropped while borrowed\n  --> src/check.rs:45:16\n   |\n45 |     "
        'let path = target.replace("%20", " ").split(\'#\').next().unwrap_or_default();',
        code=101,
    )
    session.note(
        "The borrow checker is right: `split` borrows from a string that nobody keeps. Bind it first."
    )
    session.edit(
        "src/check.rs",
        '    let path = target.replace("%20", " ").split(\'#\').next().unwrap_or_default();\n',
        '    let decoded = target.replace("%20", " ");\n'
        "    let path = decoded.split('#').next().unwrap_or_default();\n",
    )
    session.shell("cargo test -q", "running 1 test\n.\ntest result: ok. 1 passed; 0 failed")
    session.reply(
        "Green here. Only `%20` is decoded; other escapes would need a table, and I found none in the docs."
    )
    session.commit("Decode blanks in link targets")
