"""Compare what two checkouts print for the same history, byte for byte.

    python tools/compare_output.py OLD_CHECKOUT NEW_CHECKOUT [SOURCE=ROOT ...]

Runs the commands below on the demo (written by the old checkout) and on each given root, then requests
pages of the web app and tools of the MCP server. Prints what differs; ends with 1 if anything does. Times
of the run (`took_ms`, a backup's date) are masked.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

QUERIES = [
    "error",
    "tide gauge",
    "retry budget",
    "test",
    "file:src",
    "role:user the",
    "flaky test since:2025",
]
COMMANDS = [
    *(["list", "--limit", "1000", *more] for more in ([], ["--subagents"], ["--sort", "tokens"], ["--gone"])),
    *(["search", *by, query] for query in QUERIES for by in ([], ["--by", "message"])),
    ["search", "--regex", "T[a-z]+t"],
    ["search", "--exact", "("],
    ["recall", "fix the flaky test of the parser"],
    *(
        ["stats", *by]
        for by in (
            [],
            *(["--by", key] for key in ["day", "week", "month", "source", "workspace", "model", "tool"]),
        )
    ),
    ["stats", "--year", "2026"],
    ["stats", "--explain", "1"],
    ["doctor"],
    ["changes"],
    ["tags"],
    ["secrets"],
    ["backup", "list"],
    ["migrate", "1", "--to", "/tmp/elsewhere", "--dry-run"],
    ["migrate", "2", "--to", "/tmp/elsewhere", "--dry-run"],
]
SESSION_COMMANDS = [["show"], ["handoff"], ["export", "--format", "json"], ["resume", "--print"]]
TEXT_COMMANDS = [
    ["show"],
    ["show", "--all"],
    *(["export", "--format", name] for name in ("md", "html", "txt", "jsonl")),
]
REPOSITORY_COMMANDS = [["commits", "--all"], ["survival"], ["journal", "--dry-run"]]
PAGES = [
    "/", "/sessions", "/search?q=error", "/search?q=T.st&mode=regex", "/statistics", "/commits", "/files",
    "/health",    "/journal",
    "/api/v1/sessions", "/api/v1/search?q=test", "/api/v1/search/facets?q=test", "/api/v1/facets",
    "/api/v1/workspaces", "/api/v1/statistics", "/api/v1/openapi.json", "/api/v1/sessions?limit=0",
]  # fmt: skip
MASKS = [
    (re.compile(rb'"took_ms": ?[\d.]+'), b'"took_ms": 0'),
    (re.compile(rb"\b\d+(\.\d+)? ms\b"), b"0 ms"),
    (re.compile(rb'(nonce|csrf|token)["=\\:-]+[\w-]{16,}'), rb"\1"),
    (re.compile(rb"/static/\w+/"), b"/static/"),  # the version of the files
    (re.compile(rb'data-revision="[^"]*"'), b""),
    (re.compile(rb'"(since|last_sync|at)": ?"2[^"]+"'), rb'"\1": ""'),
]


class Checkout:
    """One checkout and the folder in which its program runs, the same for both checkouts."""

    def __init__(self, source: Path, work: Path, roots: list[str]) -> None:
        self.work, self.roots = work, roots
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("BACKSCROLL")},
            "PYTHONPATH": str(source / "src"),
            "HOME": str(work / "user"),
            "COLUMNS": "120",
            "NO_COLOR": "1",
        }

    def command(self, *arguments: str) -> list[str]:
        roots = [f"--root={root}" for root in self.roots]
        return [sys.executable, "-m", "backscroll", "--home", str(self.work / "home"), *roots, *arguments]

    def run(self, *arguments: str, folder: Path | None = None) -> bytes:
        done = subprocess.run(
            self.command(*arguments),
            capture_output=True,
            env=self.environment,
            cwd=folder or self.work,
            timeout=600,
        )
        return masked(done.stdout) + b"\n-- exit " + str(done.returncode).encode() + masked(done.stderr)


def masked(text: bytes) -> bytes:
    for pattern, replacement in MASKS:
        text = pattern.sub(replacement, text)
    return text


def outputs(checkout: Checkout, repositories: list[Path]) -> Iterator[tuple[str, bytes]]:
    checkout.run("sync")
    for command in COMMANDS:
        yield " ".join(command), checkout.run(*command, "--json")
        yield " ".join(command) + " (text)", checkout.run(*command)
    listed = json.loads(
        checkout.run("list", "--limit", "1000", "--subagents", "--json").partition(b"\n-- exit")[0]
    )
    refs = [session["ref"] for session in listed["data"]]
    for ref in refs:
        for command in SESSION_COMMANDS:
            yield (
                f"{' '.join(command)} {ref} --json",
                checkout.run(command[0], ref, *command[1:], *json_option(command)),
            )
    for ref in refs[:: max(1, len(refs) // 6)]:
        for command in TEXT_COMMANDS:
            yield f"{' '.join(command)} {ref}", checkout.run(command[0], ref, *command[1:])
    for repository in repositories:
        for command in REPOSITORY_COMMANDS:
            yield (
                f"{' '.join(command)} in {repository.name}",
                checkout.run(*command, "--json", folder=repository),
            )
        for file in sorted(repository.rglob("*.py"))[:3]:
            name = str(file.relative_to(repository))
            yield (
                f"blame {name} in {repository.name}",
                checkout.run("blame", name, "--json", folder=repository),
            )
    yield from web_pages(checkout, refs)
    yield from mcp_answers(checkout, refs)


def json_option(command: list[str]) -> list[str]:
    return [] if command[0] in ("export", "resume") else ["--json"]


def web_pages(checkout: Checkout, refs: list[str]) -> Iterator[tuple[str, bytes]]:
    server = subprocess.Popen(
        checkout.command("serve", "--no-browser", "--no-sync", "--port", "17499"),
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=checkout.environment, cwd=checkout.work,
    )  # fmt: skip
    try:
        pages = [
            *PAGES,
            *(f"/api/v1/sessions/{ref}/messages" for ref in refs[:10]),
            *(f"/sessions/{ref}" for ref in refs[:10]),
        ]
        for page in pages:
            yield f"GET {page}", masked(get(f"http://127.0.0.1:17499{page}"))
    finally:
        server.terminate()
        server.wait()


def get(address: str) -> bytes:
    for _ in range(100):
        try:
            with urllib.request.urlopen(address, timeout=60) as response:
                return bytes(response.read())
        except urllib.error.HTTPError as error:
            return str(error.code).encode() + error.read()
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.2)
    return b"no answer"


def mcp_answers(checkout: Checkout, refs: list[str]) -> Iterator[tuple[str, bytes]]:
    ref = refs[0]
    requests: list[tuple[str, dict[str, object]]] = [
        ("tools/list", {}),
        ("prompts/list", {}),
        ("resources/list", {}),
        *(
            ("tools/call", {"name": name, "arguments": arguments})
            for name, arguments in [
                ("list_sessions", {}),
                ("search_sessions", {"query": "test"}),
                ("get_session", {"ref": ref}),
                ("recall", {"task": "fix the flaky test"}),
                ("get_statistics", {}),
            ]
        ),
    ]
    start = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "compare", "version": "1"},
    }
    lines = [
        {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": start},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
    ]
    server = subprocess.Popen(
        checkout.command("mcp"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        env=checkout.environment, cwd=checkout.work, text=True,
    )  # fmt: skip
    assert server.stdin and server.stdout
    for line in lines:
        server.stdin.write(json.dumps(line) + "\n")
    server.stdin.flush()
    yield "mcp initialize", masked(server.stdout.readline().encode())
    for number, (method, parameters) in enumerate(requests, 1):
        server.stdin.write(
            json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": parameters}) + "\n"
        )
        server.stdin.flush()
        yield f"mcp {method} {parameters.get('name', '')}", masked(server.stdout.readline().encode())
    server.stdin.close()
    server.terminate()
    server.wait()


def record(source: Path, history: Path | None, roots: list[str], work: Path) -> dict[str, bytes]:
    """Run everything in the same folder, so that paths are equal."""
    shutil.rmtree(work, ignore_errors=True)
    (work / "user").mkdir(parents=True)
    if history:
        shutil.copytree(history, work / "demo", symlinks=True)
        demo = work / "demo"
        roots = [f"claude-code={demo}/.claude", f"cursor={demo}/.config/Cursor", f"cursor-cli={demo}/.cursor"]
        shutil.copytree(demo / "archive", work / "home")
    repositories = sorted((work / "demo/projects").glob("*")) if history else []
    return dict(
        outputs(Checkout(source, work, roots), [path for path in repositories if (path / ".git").exists()])
    )


def main() -> int:
    old, new, *roots = sys.argv[1:]
    different = 0
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder) / "run"
        demo = Path(folder) / "demo"
        environment = {**os.environ, "PYTHONPATH": str(Path(old).resolve() / "src")}
        subprocess.run(
            [sys.executable, "-m", "backscroll", "demo", str(demo)],
            env=environment,
            check=True,
            stdout=subprocess.DEVNULL,
        )
        for name, history, given in [("demo", demo, []), *((root, None, [root]) for root in roots)]:
            before = record(Path(old).resolve(), history, given, work)
            after = record(Path(new).resolve(), history, given, work)
            differing = [key for key in before | after if before.get(key) != after.get(key)]
            print(f"{name}: {len(before)} outputs, {len(differing)} differ")
            for key in differing:
                print(f"  {key}")
                show_difference(before.get(key, b""), after.get(key, b""))
            different += len(differing)
    return int(bool(different))


def show_difference(before: bytes, after: bytes) -> None:
    start = next(
        (at for at, (a, b) in enumerate(zip(before, after, strict=False)) if a != b),
        min(len(before), len(after)),
    )
    for sign, text in (("-", before), ("+", after)):
        print(f"    {sign} {text[max(0, start - 60) : start + 100]!r}")


if __name__ == "__main__":
    sys.exit(main())
