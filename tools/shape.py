"""Print the shape of the code: modules, lines, imports, and the modules that run for five requests.

    python tools/shape.py            all figures
    python tools/shape.py --static   without the requests

`testing/` is not counted. A module runs for a request if one of its functions is called while the request is
handled for the second time: imports and first uses do not count.
"""

import ast
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).parents[1]
SOURCE = REPOSITORY / "src"
PACKAGE = SOURCE / "backscroll"
SUITE_CPU_SECONDS = (
    REPOSITORY / ".pytest_cache/v/backscroll/suite_cpu_seconds"
)  # written by tests/conftest.py
PORT = 17498
BACKGROUND_SYNC_SECONDS = 3.0  # then the server only waits for changes

# Runs a command twice, or a server until it gets SIGUSR2, and writes the files whose functions were called.
# The second run of a command counts; for a server, what happens after SIGUSR1.
TRACER = """
import os, signal, sys, threading
files, is_on = set(), False
def trace(frame, event, argument):
    if is_on and event == "call" and frame.f_code.co_flags & 1:  # CO_OPTIMIZED: not a module or class body
        files.add(frame.f_code.co_filename)
def start(*_):
    global is_on
    is_on = True
def report(*_):
    global is_on
    is_on = False
    with open(os.environ["TRACE"], "w") as file:
        file.write("\\n".join(files))
signal.signal(signal.SIGUSR1, start)
signal.signal(signal.SIGUSR2, report)
threading.setprofile(trace)
sys.setprofile(trace)
from backscroll.cli import main
commands = [command.split("\\n") for command in os.environ["COMMANDS"].split("\\n\\n")]
for number, command in enumerate(commands):
    sys.argv = ["backscroll", *command]
    is_on = number == len(commands) - 1 and number > 0
    for line in filter(None, os.environ.get("BEFORE", "").split("\\n\\n")[number : number + 1]):
        exec(line)
    try:
        main()
    except SystemExit:
        pass
report()
"""


def main() -> None:
    print_static_figures()
    if "--static" not in sys.argv:
        print_request_figures()
    if SUITE_CPU_SECONDS.exists():
        print(f"{'CPU seconds of the last make test':42} {float(SUITE_CPU_SECONDS.read_text()):8,.0f}")


def print_static_figures() -> None:
    files = [
        file for file in sorted(PACKAGE.rglob("*.py")) if "testing" not in file.relative_to(PACKAGE).parts
    ]
    lengths = [len(file.read_text().splitlines()) for file in files]
    total = sum(lengths)
    print(f"{'modules':42} {len(files):8,}")
    print(f"{'lines':42} {total:8,}")
    print(f"{'lines per module, median':42} {statistics.median(lengths):8,.0f}")
    print(f"{'lines per module, 95 % below':42} {statistics.quantiles(lengths, n=20)[-1]:8,.0f}")
    longest = sorted(zip(lengths, files, strict=True), reverse=True)
    print(f"{'lines of the longest module':42} {longest[0][0]:8,}  {longest[0][1].relative_to(PACKAGE)}")
    print(f"{'modules over 900 lines':42} {sum(length > 900 for length in lengths):8,}")
    print(f"{'modules under 100 lines':42} {sum(length < 100 for length in lengths):8,}")
    print(f"{'imports and __all__, share of the lines':42} {sum(map(import_lines, files)) / total:8.1%}")
    print(f"{'modules with one importer in their package':42} {len(single_importer_modules(files)):8,}")
    for package, count in sorted(Counter(file.relative_to(PACKAGE).parts[0] for file in files).items()):
        if "--packages" in sys.argv:
            lines = sum(
                n
                for n, file in zip(lengths, files, strict=True)
                if file.relative_to(PACKAGE).parts[0] == package
            )
            print(f"  {package:40} {count:8,} {lines:8,}")


def import_lines(file: Path) -> int:
    """Return the number of lines of import statements and `__all__`."""
    lines = set()
    for node in ast.walk(ast.parse(file.read_text())):
        is_all = isinstance(node, ast.Assign) and any(
            getattr(name, "id", "") == "__all__" for name in node.targets
        )
        if is_all or isinstance(node, ast.Import | ast.ImportFrom):
            assert isinstance(node, ast.stmt)
            lines |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return len(lines)


def single_importer_modules(files: list[Path]) -> list[Path]:
    """Return the modules that only one other module imports, which is in the same top package."""
    modules = {module_name(file): file for file in files}
    importers: dict[str, set[str]] = defaultdict(set)
    for importer, file in modules.items():
        for node in ast.walk(ast.parse(file.read_text())):
            for name in imported_names(node):
                target = name if name in modules else name.rpartition(".")[0]
                if target in modules and target != importer:
                    importers[target].add(importer)
    return [
        modules[name]
        for name, found in importers.items()
        if len(found) == 1 and next(iter(found)).split(".")[1:2] == name.split(".")[1:2]
    ]


def imported_names(node: ast.AST) -> list[str]:
    match node:
        case ast.Import(names=names):
            return [alias.name for alias in names]
        case ast.ImportFrom(module=str(module), names=names):
            return [f"{module}.{alias.name}" for alias in names]
    return []


def module_name(file: Path) -> str:
    return ".".join(file.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")


def print_request_figures() -> None:
    with tempfile.TemporaryDirectory() as folder:
        demo = Path(folder) / "demo"
        run(["demo", str(demo)], folder)
        roots = [
            f"--root={root}"
            for root in (
                f"claude-code={demo}/.claude",
                f"cursor={demo}/.config/Cursor",
                f"cursor-cli={demo}/.cursor",
            )
        ]
        common = ["--home", str(demo / "archive"), *roots]
        run([*common, "sync"], folder)
        listed = json.loads(run([*common, "list", "--json", "--source", "claude-code"], folder))
        first, second = (session["ref"] for session in listed["data"][:2])
        session = next((demo / ".claude").rglob(f"{first.partition(':')[2]}.jsonl"))
        last_line = f'open({str(session)!r}).readlines()[-1].replace(\'"uuid":"\', \'"uuid":"x\')'
        append = f"open({str(session)!r}, 'a').write({last_line})"
        line = "modules that run for"
        print(f"{line + ' search':42} {traced([*common, 'search', 'test'], folder=folder):8,}")
        synced = traced([*common, "sync"], before=append, folder=folder)
        print(f"{line + ' sync of one new line':42} {synced:8,}")
        migrations = [[*common, "migrate", ref, "--to", folder, "--yes"] for ref in (first, second)]
        print(f"{line + ' migrate of one session':42} {traced(*migrations, folder=folder):8,}")
        print(f"{line + ' the web page of a session':42} {traced_web(common, first, folder):8,}")
        print(f"{line + ' MCP recall':42} {traced_mcp(common, folder):8,}")


def run(arguments: list[str], folder: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), "HOME": folder}
    done = subprocess.run(
        [sys.executable, "-m", "backscroll", *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def trace_environment(folder: str, *commands: list[str], before: str = "") -> dict[str, str]:
    return {
        **os.environ,
        "PYTHONPATH": str(SOURCE),
        "HOME": folder,
        "TRACE": f"{folder}/trace",
        "COMMANDS": "\n\n".join("\n".join(command) for command in commands),
        "BEFORE": "\n\n".join([before] * len(commands)),
    }


def traced(*commands: list[str], folder: str, before: str = "") -> int:
    """Return the number of modules that run for the last command; one command runs twice."""
    twice = commands if len(commands) > 1 else commands * 2
    environment = trace_environment(folder, *twice, before=before)
    subprocess.run([sys.executable, "-c", TRACER], env=environment, stdout=subprocess.DEVNULL, check=True)
    return traced_modules(folder)


def traced_modules(folder: str) -> int:
    files = Path(f"{folder}/trace").read_text().splitlines()
    own = sorted(
        str(Path(file).relative_to(PACKAGE))
        for file in files
        if file.startswith(str(PACKAGE)) and file.endswith(".py")  # not a compiled template
    )
    if "--names" in sys.argv:
        print("  " + "\n  ".join(own))
    return len(own)


def traced_web(common: list[str], ref: str, folder: str) -> int:
    environment = trace_environment(
        folder, [*common, "serve", "--no-browser", "--no-sync", "--port", str(PORT)]
    )
    with subprocess.Popen(
        [sys.executable, "-c", TRACER], env=environment, stdout=subprocess.DEVNULL
    ) as server:
        address = f"http://127.0.0.1:{PORT}/sessions/{ref}"
        for _ in range(100):
            try:
                urllib.request.urlopen(address, timeout=30).read()
                break
            except OSError:
                time.sleep(0.2)
        return finish(server, lambda: urllib.request.urlopen(address, timeout=30).read(), folder)


def traced_mcp(common: list[str], folder: str) -> int:
    environment = trace_environment(folder, [*common, "mcp"])
    client = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "shape", "version": "1"},
    }
    recall = {"name": "recall", "arguments": {"task": "fix the flaky test"}}
    with subprocess.Popen(
        [sys.executable, "-c", TRACER],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as server:

        def send(document: dict[str, Any]) -> None:
            assert server.stdin and server.stdout
            server.stdin.write(json.dumps({"jsonrpc": "2.0", **document}) + "\n")
            server.stdin.flush()
            if "id" in document:
                server.stdout.readline()

        send({"id": 1, "method": "initialize", "params": client})
        send({"method": "notifications/initialized"})
        send({"id": 2, "method": "tools/call", "params": recall})
        time.sleep(BACKGROUND_SYNC_SECONDS)
        return finish(server, lambda: send({"id": 3, "method": "tools/call", "params": recall}), folder)


def finish(server: subprocess.Popen[Any], request: Any, folder: str) -> int:
    """Trace one more request of a warm server, end the server, and return the number of modules."""
    server.send_signal(signal.SIGUSR1)
    time.sleep(0.5)
    request()
    server.send_signal(signal.SIGUSR2)
    time.sleep(0.5)
    server.kill()
    return traced_modules(folder)


if __name__ == "__main__":
    main()
