"""Workspaces with the same name, and costs that a tool reports."""

from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

from backscroll.config import NamedRoot
from backscroll.history.history import History
from backscroll.testing.claude_code import Transcript
from backscroll.web.app import create_app
from backscroll.web.templating import distinct_labels
from tests.web.conftest import ADDRESS, TOKEN, text_of

COSTLY_ID = "10000000-0000-4000-8000-000000000041"
FREE_ID = "10000000-0000-4000-8000-000000000042"


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """A client of a history with two workspaces of the same name."""
    folder = tmp_path_factory.mktemp("workspaces")
    Transcript(COSTLY_ID, seed=1, cwd="/home/zoe/ferry").user("One").assistant("1").cost(0.31).write(
        folder / "claude"
    )
    Transcript(FREE_ID, seed=2, cwd="/srv/ferry").user("Two").assistant("2").write(folder / "claude")

    def open_history() -> History:
        return History(roots=[NamedRoot("claude-code", folder / "claude")], home=folder / "home")

    with open_history() as history:
        history.sync()
    with TestClient(create_app(open_history, TOKEN, auto_sync=False), base_url=ADDRESS) as client:
        yield client


@pytest.mark.parametrize("path", ["/?range=all", "/figures?range=all&stack=workspace", "/sessions"])
def test_workspaces_with_the_same_name_are_told_apart(client: TestClient, path: str) -> None:
    text = text_of(client.get(path).text)
    assert "ferry (/home/zoe)" in text
    assert "ferry (/srv)" in text


def test_only_repeated_labels_are_extended() -> None:
    values = [("ssh:/srv/ferry", "ferry"), ("/srv/ferry", "ferry"), ("/srv/board", "board"), ("x", "x")]
    assert distinct_labels(values) == ["ferry (ssh:/srv)", "ferry (/srv)", "board", "x"]


def test_the_cost_that_a_tool_reports_is_shown(client: TestClient) -> None:
    assert client.get(f"/api/v1/sessions/{COSTLY_ID}").json()["reported_cost_usd"] == 0.31
    assert client.get(f"/api/v1/sessions/{FREE_ID}").json()["reported_cost_usd"] is None
    assert "Cost reported by the tool $0.31" in text_of(client.get(f"/sessions/{COSTLY_ID}").text)
    assert "Cost reported" not in client.get(f"/sessions/{FREE_ID}").text
