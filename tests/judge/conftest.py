"""A stage for each version of the tool."""

import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.judge import install
from tests.judge.model_server import serve
from tests.judge.script import Script
from tests.judge.stage import Stage, network_isolation
from tests.judge.versions import Version

_FIRST_VERSION = "0.2.109"


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Collect the scenarios with ``--judge`` only."""
    is_scenario = collection_path.name.startswith("test_") and collection_path.parent == Path(__file__).parent
    return True if is_scenario and not config.getoption("--judge") else None


def pytest_report_header(config: pytest.Config) -> str | None:
    if not config.getoption("--judge"):
        return None
    network = "isolated" if network_isolation() else "not isolated (unshare is not permitted)"
    return f"judge: Claude Code {config.getoption('--judge')}; network {network}"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "version" in metafunc.fixturenames:
        versions = [each for each in metafunc.config.getoption("--judge").split(",") if each]
        metafunc.parametrize("version", versions or [pytest.param("", marks=pytest.mark.skip("no version"))])


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip scenarios that a version does not have."""
    for item in items:
        version = getattr(item, "callspec", None) and item.callspec.params.get("version")  # type: ignore[attr-defined]
        if not version:
            continue
        if Version(version) < _FIRST_VERSION:
            item.add_marker(
                pytest.mark.skip(f"Claude Code before {_FIRST_VERSION} resumes no session by its id")
            )
        for since in item.iter_markers("since"):
            if Version(version) < since.args[0]:
                item.add_marker(pytest.mark.skip(f"needs Claude Code {since.args[0]} or newer"))
        for before in item.iter_markers("before"):
            if not Version(version) < before.args[0]:
                item.add_marker(pytest.mark.skip(f"needs Claude Code before {before.args[0]}"))


@pytest.fixture
def stage(version: str, request: pytest.FixtureRequest) -> Iterator[Stage]:
    if sys.platform != "linux":
        pytest.skip("the judge tests need Linux")
    reason = install.failure(version)
    if reason is not None:
        pytest.skip(reason)
    script = Script()
    folder = Path(tempfile.mkdtemp(prefix="judge-"))  # short: the path of a socket has at most 107 bytes
    try:
        with serve(script, folder / "model.sock"):
            yield Stage(version, install.executable(version), folder, script, folder / "model.sock")
    finally:
        if request.config.getoption("--judge-keep"):
            sys.stderr.write(f"{request.node.name}: {folder}\n")
        else:
            shutil.rmtree(folder, ignore_errors=True)
