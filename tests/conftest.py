"""Shared fixtures: an empty home folder and a clean environment. Hypothesis profiles and soak tests."""

import gc
import os
import resource
import shutil
import signal
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.cheap_archives import copy_schema_of_first_archive, keep_freed_memory
from tests.demo_archive import DemoArchive

settings.register_profile(
    "short", max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
settings.register_profile("soak", settings.get_profile("short"), max_examples=300)
settings.register_profile("long", settings.get_profile("short"), max_examples=5000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "short"))

# A background job of a shell ignores Ctrl-C, and so would every command that the tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)

_LEFT_OUT = pytest.StashKey[int]()  # number of soak tests that were not selected


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="Rewrite the golden files.")
    parser.addoption("--judge", default="", metavar="VERSIONS", help="Run tests/judge with these versions.")
    parser.addoption("--judge-keep", action="store_true", help="Keep the folders of the judge tests.")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the soak tests, unless ``-m`` or the name of a test selects them."""
    if config.option.markexpr or any("::" in argument for argument in config.args):
        return
    left_out = [item for item in items if item.get_closest_marker("soak")]
    items[:] = [item for item in items if not item.get_closest_marker("soak")]
    config.hook.pytest_deselected(items=left_out)
    config.stash[_LEFT_OUT] = len(left_out)


def pytest_collection_finish() -> None:
    """Exclude the collected tests from garbage collection, which would visit them again and again."""
    gc.collect()
    gc.freeze()


def pytest_sessionfinish(session: pytest.Session) -> None:
    output: dict[str, Any] | None = getattr(session.config, "workeroutput", None)  # of a pytest-xdist worker
    if output is not None:
        output["left_out"] = session.config.stash.get(_LEFT_OUT, 0)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Receive the number of a worker. All workers collect the same tests."""
    node.config.stash[_LEFT_OUT] = getattr(node, "workeroutput", {}).get("left_out", 0)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if left_out := terminalreporter.config.stash.get(_LEFT_OUT, 0):
        terminalreporter.write_line(f"{left_out} soak tests were left out: make soak")


@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config: pytest.Config) -> None:
    """Keep the CPU time of a run of the whole suite, for ``make shape``. All workers have ended by now."""
    if config.args_source is pytest.Config.ArgsSource.TESTPATHS and not hasattr(config, "workerinput"):
        usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        seconds = sum(usage.ru_utime + usage.ru_stime for usage in usages)
        assert config.cache is not None
        config.cache.set("backscroll/suite_cpu_seconds", round(seconds))


@pytest.fixture(scope="session", autouse=True)
def _cheap_archives() -> Iterator[None]:
    keep_freed_memory()
    with copy_schema_of_first_archive():
        yield


@pytest.fixture(scope="session")
def _home_folders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Yield the paths of new folders. `mktemp` would list the folders of all earlier tests."""
    folder = tmp_path_factory.mktemp("homes")
    return (folder / str(number) for number in count())


@pytest.fixture(autouse=True)
def _empty_home(_home_folders: Iterator[Path], monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Hide the history of the user who runs the tests."""
    home = next(_home_folders)
    home.mkdir()
    for name in list(os.environ):
        if name.startswith(("CLAUDE_", "CURSOR_", "BACKSCROLL_", "XDG_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("USERPROFILE", str(home))
    yield
    shutil.rmtree(home, ignore_errors=True)


@pytest.fixture(scope="session")
def demo_archive(tmp_path_factory: pytest.TempPathFactory) -> DemoArchive:
    folder = tmp_path_factory.getbasetemp()
    is_worker = "PYTEST_XDIST_WORKER" in os.environ
    return DemoArchive((folder.parent if is_worker else folder).resolve() / "demo-archive")


@pytest.fixture
def update_golden(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--update-golden"))


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    """Return the path of a file that a test may write many times."""
    return tmp_path / "scratch.jsonl"
