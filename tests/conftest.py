"""Shared fixtures: an empty home folder, a clean environment, and two hypothesis profiles."""

import os
import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "short", max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
settings.register_profile("long", settings.get_profile("short"), max_examples=5000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "short"))


# A background job of a shell ignores Ctrl-C, and so would every command that the tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="Rewrite the golden files.")
    parser.addoption("--judge", default="", metavar="VERSIONS", help="Run tests/judge with these versions.")
    parser.addoption("--judge-keep", action="store_true", help="Keep the folders of the judge tests.")


@pytest.fixture(autouse=True)
def _empty_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide the history of the user who runs the tests."""
    home = tmp_path_factory.mktemp("home")
    for name in list(os.environ):
        if name.startswith(("CLAUDE_", "CURSOR_", "BACKSCROLL_", "XDG_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("USERPROFILE", str(home))


@pytest.fixture
def update_golden(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--update-golden"))


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    """Return the path of a file that a test may write many times."""
    return tmp_path / "scratch.jsonl"
