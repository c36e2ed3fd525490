"""Complete files that Lintel's sessions write."""

CARGO = """\
[package]
name = "lintel"
version = "0.1.0"
edition = "2024"

[dependencies]
"""

MAIN = """\
mod check;

use std::path::PathBuf;

fn main() {
    let files: Vec<PathBuf> = std::env::args().skip(1).map(PathBuf::from).collect();
    let mut broken = 0;
    for file in &files {
        for link in check::broken_links(file) {
            println!("{}:{}: {}", file.display(), link.line, link.target);
            broken += 1;
        }
    }
    if broken > 0 {
        std::process::exit(1);
    }
}
"""

CHECK = """\
use std::fs;
use std::path::Path;

pub struct Link {
    pub line: usize,
    pub target: String,
}

/// Links of a Markdown file that lead nowhere.
pub fn broken_links(file: &Path) -> Vec<Link> {
    let text = fs::read_to_string(file).unwrap_or_default();
    let folder = file.parent().unwrap_or(Path::new("."));
    links(&text).into_iter().filter(|link| !exists(folder, &link.target)).collect()
}

fn links(text: &str) -> Vec<Link> {
    let mut found = Vec::new();
    for (number, line) in text.lines().enumerate() {
        for part in line.split("](").skip(1) {
            if let Some((target, _)) = part.split_once(')') {
                found.push(Link { line: number + 1, target: target.to_string() });
            }
        }
    }
    found
}

fn exists(folder: &Path, target: &str) -> bool {
    target.contains("://") || folder.join(target).exists()
}
"""

SLUG = """\
/// The anchor of a heading, as the big forges make it: lower case, punctuation dropped, blanks to hyphens.
pub fn slug(heading: &str) -> String {
    heading
        .trim()
        .to_lowercase()
        .chars()
        .filter(|letter| letter.is_alphanumeric() || *letter == ' ' || *letter == '-' || *letter == '_')
        .map(|letter| if letter == ' ' { '-' } else { letter })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::slug;

    #[test]
    fn punctuation_goes_and_blanks_stay_apart() {
        assert_eq!(slug("What's new in 0.2?"), "whats-new-in-02");
        assert_eq!(slug("a & b"), "a--b");
    }
}
"""

CHECKER = """\
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use crate::check::{self, Link};

/// Checks files and remembers the anchors of those it has seen.
#[derive(Default)]
pub struct Checker {
    anchors: Mutex<HashMap<PathBuf, Vec<String>>>,
}

impl Checker {
    /// Links of a file that lead nowhere, anchors in other files included.
    pub fn check(&self, file: &Path) -> Vec<Link> {
        let mut broken = check::broken_links(file);
        let anchored = check::anchored(file).into_iter();
        broken.extend(anchored.filter(|(path, link)| !self.has(path, &link.target)).map(|(_, link)| link));
        broken
    }

    fn has(&self, path: &Path, anchor: &str) -> bool {
        let mut known = self.anchors.lock().unwrap();
        let anchors = known.entry(path.to_path_buf()).or_insert_with(|| check::anchors(path));
        anchors.iter().any(|one| one == anchor)
    }
}
"""

PACKAGE = """\
{
  "name": "lintel-cli",
  "version": "0.2.0",
  "type": "module",
  "bin": { "lintel": "dist/bin.js" },
  "optionalDependencies": {
    "@lintel/linux-x64": "0.2.0",
    "@lintel/darwin-arm64": "0.2.0",
    "@lintel/win32-x64": "0.2.0"
  }
}
"""

BIN = """\
#!/usr/bin/env node
import { spawnSync } from "node:child_process";
import { createRequire } from "node:module";

const require = createRequire(import.meta.url);

/** The binary that belongs to this machine; each one is a package of its own. */
function binary(): string {
  const name = `@lintel/${process.platform}-${process.arch}`;
  try {
    return require.resolve(`${name}/lintel${process.platform === "win32" ? ".exe" : ""}`);
  } catch {
    console.error(`lintel has no binary for ${process.platform}-${process.arch}`);
    process.exit(2);
  }
}

const done = spawnSync(binary(), process.argv.slice(2), { stdio: "inherit" });
process.exit(done.status ?? 2);
"""
