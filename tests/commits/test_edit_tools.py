"""Every tool that edits files is evidence."""

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from backscroll.config import NamedRoot
from backscroll.history.history import History
from backscroll.testing import cursor
from backscroll.testing.claude_code import tool_calls
from backscroll.testing.cursor.messages import Message
from tests.builders.git_repository import GitRepository
from tests.commits.conftest import START, Workplace

OLD = "def total(prices):\n    return sum(prices)\n"
NEW = "def total(prices, rate):\n    amount = sum(prices) * rate\n    return round(amount, 2)\n"
PATCH = "".join([*(f"-{line}\n" for line in OLD.splitlines()), *(f"+{line}\n" for line in NEW.splitlines())])


def claude_calls(path: str) -> dict[str, tool_calls.Call]:
    first, second, third = (f"{line}\n" for line in NEW.splitlines())
    return {
        "Write": tool_calls.write(path, NEW, original=OLD),
        "Edit": tool_calls.edit(path, OLD, NEW, original=OLD),
        "MultiEdit": tool_calls.multi_edit(
            path,
            [("def total(prices):\n", first), ("    return sum(prices)\n", second + third)],
            original=OLD,
        ),
        "here-document": tool_calls.bash(f"cat > src/total.py <<'EOF'\n{NEW}EOF"),
        "here-document to tee": tool_calls.bash(f"tee src/total.py <<EOF > /dev/null\n{NEW}EOF"),
        "patch": tool_calls.bash(
            f"git apply <<'EOF'\n--- a/src/total.py\n+++ b/src/total.py\n@@ -1,2 +1,3 @@\n{PATCH}EOF"
        ),
        "script": tool_calls.bash(
            f"python3 - <<'EOF'\ntext = open(p).read().replace('''{OLD}''', '''{NEW}''')\nEOF"
        ),
    }


@pytest.mark.parametrize("name", claude_calls("x"))
def test_an_edit_of_claude_code_is_content_and_has_its_prompt(workplace: Workplace, name: str) -> None:
    checkout = workplace.checkout
    checkout.write("src/total.py", OLD)
    checkout.commit("Start", START - timedelta(days=1))
    session = workplace.session(0)
    session.transcript.run(claude_calls(str(checkout.folder / "src/total.py"))[name])
    checkout.write("src/total.py", NEW)
    sha = checkout.commit("Add the rate", session.now + timedelta(minutes=30))
    with workplace.history() as history:
        (linked,) = history.get_commit(sha, checkout.folder).sessions
        lines = history.blame_file("src/total.py", checkout.folder)
    assert {"content"} <= {evidence.kind for evidence in linked.evidence}
    assert {line.prompt for line in lines} == {"Task 1"}


def test_a_cell_of_a_notebook_is_content(workplace: Workplace) -> None:
    checkout = workplace.checkout
    session = workplace.session(0)
    path = str(checkout.folder / "total.ipynb")
    arguments = {"notebook_path": path, "cell_id": "a1", "new_source": NEW, "edit_mode": "replace"}
    session.transcript.run(tool_calls.Call("NotebookEdit", arguments, f"Updated cell a1 with {NEW}"))
    cell = {"cell_type": "code", "source": NEW.splitlines(keepends=True)}
    checkout.write("total.ipynb", json.dumps({"cells": [cell], "nbformat": 4}, indent=1))
    sha = checkout.commit("Add a notebook", session.now + timedelta(minutes=30))
    with workplace.history() as history:
        (linked,) = history.get_commit(sha, checkout.folder).sessions
        lines = history.blame_file("total.ipynb", checkout.folder)
    assert {"content"} <= {evidence.kind for evidence in linked.evidence}
    written = [json.loads(line.text.strip().removesuffix(",")) for line in lines if line.session_ref]
    assert "".join(written) == NEW


def cursor_calls(path: str) -> dict[str, Message]:
    diff = {"diff": {"chunks": [{"diffString": PATCH, "oldStart": 1, "newStart": 1}]}}
    patch = f"*** Begin Patch\n*** Update File: {path}\n@@\n{PATCH}*** End Patch"
    return {
        "search_replace": cursor.tool(
            "search_replace", {"file_path": path, "old_string": OLD, "new_string": NEW}, {}
        ),
        "edit_file": cursor.tool("edit_file", {"target_file": path, "code_edit": NEW}, diff),
        "edit_file without result": cursor.tool("edit_file", {"target_file": path, "code_edit": NEW}, {}),
        "apply_patch": cursor.tool("apply_patch", {"patch": patch}, {}),
        "write": cursor.tool("write", {"file_path": path, "contents": NEW}, {}),
        "shell": cursor.tool(
            "run_terminal_cmd", {"command": f"cat > src/total.py <<'EOF'\n{NEW}EOF"}, {"output": ""}
        ),
    }


class CursorWorkplace:
    """A repository, and a Cursor home in the same folder."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / ".config" / "Cursor"
        self.checkout = GitRepository(folder / "shop")
        self.home = cursor.Home(self.root)
        self.workspace = cursor.local_folder(str(self.checkout.folder))
        self.archive = folder / "archive"

    def at(self, minutes: float) -> int:
        return int((START + timedelta(minutes=minutes)).timestamp() * 1000)

    def composer(self, *messages: Message, **options: Any) -> str:
        return self.home.composer(messages, workspace=self.workspace, at=self.at(0), **options).id

    def history(self) -> History:
        self.home.write()
        history = History(roots=[NamedRoot("cursor", self.root)], home=self.archive)
        history.sync()
        return history


@pytest.fixture
def cursor_workplace(tmp_path: Path) -> CursorWorkplace:
    return CursorWorkplace(tmp_path)


@pytest.mark.parametrize("name", cursor_calls("x"))
def test_an_edit_of_cursor_is_content_and_has_its_prompt(
    cursor_workplace: CursorWorkplace, name: str
) -> None:
    checkout = cursor_workplace.checkout
    checkout.write("src/total.py", OLD)
    checkout.commit("Start", START - timedelta(days=1))
    call = cursor_calls(str(checkout.folder / "src/total.py"))[name]
    id_ = cursor_workplace.composer(cursor.user("Add a rate"), call, cursor.assistant("Done."))
    checkout.write("src/total.py", NEW)
    sha = checkout.commit("Add the rate", START + timedelta(minutes=40))
    with cursor_workplace.history() as history:
        (linked,) = history.get_commit(sha, checkout.folder).sessions
        lines = history.blame_file("src/total.py", checkout.folder)
    assert linked.session_id == id_
    assert {"content"} <= {evidence.kind for evidence in linked.evidence}
    assert {line.prompt for line in lines} == {"Add a rate"}


@pytest.mark.parametrize("is_timed", [True, False])
def test_an_inferred_time_is_marked_in_the_evidence(
    cursor_workplace: CursorWorkplace, is_timed: bool
) -> None:
    checkout = cursor_workplace.checkout
    checkout.write("src/total.py", OLD)
    checkout.commit("Start", START - timedelta(days=1))
    call = cursor_calls(str(checkout.folder / "src/total.py"))["write"]
    messages = [cursor.user("Add a rate"), call, cursor.assistant("Done.")]
    if not is_timed:
        fields = {"createdAt": None, "timingInfo": None}
        messages = [replace(one, fields={**one.fields, **fields}, header=fields) for one in messages]
    data = {"createdAt": cursor_workplace.at(0), "lastUpdatedAt": cursor_workplace.at(20)}
    cursor_workplace.composer(*messages, data=data)
    checkout.write("src/total.py", NEW)
    sha = checkout.commit("Add the rate", START + timedelta(minutes=40))
    with cursor_workplace.history() as history:
        (linked,) = history.get_commit(sha, checkout.folder).sessions
    (detail,) = [evidence.detail for evidence in linked.evidence if evidence.kind == "time"]
    assert detail == f"active until {'' if is_timed else '~'}40 min before the commit"


def test_code_of_an_answer_that_was_applied_is_content(cursor_workplace: CursorWorkplace) -> None:
    checkout = cursor_workplace.checkout
    path = str(checkout.folder / "src/total.py")
    uri = {"scheme": "file", "fsPath": path, "external": f"file://{path}"}
    answer = cursor.Message("assistant", "Like this.", fields={"codeBlocks": [{"uri": uri, "version": 0}]})
    block = {"version": 0, "status": "accepted", "bubbleId": None, "content": NEW, "uri": uri}
    data = {"codeBlockData": {f"file://{path}": [block]}}
    id_ = cursor_workplace.composer(cursor.user("Add a rate"), answer, data=data)
    checkout.write("src/total.py", NEW)
    sha = checkout.commit("Add the rate", START + timedelta(minutes=40))
    with cursor_workplace.history() as history:
        (linked,) = history.get_commit(sha, checkout.folder).sessions
    assert linked.session_id == id_
    assert {"content"} <= {evidence.kind for evidence in linked.evidence}


def test_unchanged_lines_in_a_replacement_of_cursor_are_not_written_by_it(
    cursor_workplace: CursorWorkplace,
) -> None:
    checkout = cursor_workplace.checkout
    path = str(checkout.folder / "src/total.py")
    kept = "    amount = sum(prices) * rate\n"
    replacement = {"file_path": path, "old_string": kept, "new_string": f"{kept}    return amount\n"}
    cursor_workplace.composer(cursor.user("Return it"), cursor.tool("search_replace", replacement, {}))
    checkout.write("src/total.py", f"def total(prices, rate):\n{kept}")
    checkout.commit("By hand, after it was asked", START + timedelta(minutes=40))
    with cursor_workplace.history() as history:
        lines = history.blame_file("src/total.py", checkout.folder)
    assert [line.session_ref for line in lines] == [None, None]


def test_the_tracking_of_cursor_is_evidence(cursor_workplace: CursorWorkplace, tmp_path: Path) -> None:
    checkout = cursor_workplace.checkout
    (tmp_path / ".cursor").mkdir()
    checkout.write("cart.py", OLD)
    checkout.commit("Start", START - timedelta(days=1))
    id_ = cursor_workplace.composer(
        cursor.user("Add a rate"), cursor.assistant("Done, by a build that keeps no edits.")
    )
    checkout.write("cart.py", NEW)
    sha = checkout.commit("Round once", START + timedelta(minutes=10))
    cursor.write_tracking(tmp_path / ".cursor", conversation=id_, commit=sha, at=cursor_workplace.at(5))
    with cursor_workplace.history() as history:
        (linked,) = history.get_commit(sha, checkout.folder).sessions
    assert linked.session_id == id_
    weights = {evidence.kind: evidence.weight for evidence in linked.evidence}
    assert weights["tracking"] == 0.1
    assert "8 of 10 added lines" in linked.evidence[-1].detail
    assert linked.score == pytest.approx(sum(weights.values()))


def test_the_tracking_of_cursor_adds_to_other_evidence(
    cursor_workplace: CursorWorkplace, tmp_path: Path
) -> None:
    checkout = cursor_workplace.checkout
    call = cursor.tool("write", {"file_path": str(checkout.folder / "cart.py"), "contents": NEW}, {})
    id_ = cursor_workplace.composer(cursor.user("Add a cart"), call)
    checkout.write("cart.py", NEW)
    sha = checkout.commit("Add a cart", START + timedelta(minutes=10))
    with cursor_workplace.history() as history:
        (before,) = history.get_commit(sha, checkout.folder).sessions
    cursor.write_tracking(tmp_path / ".cursor", conversation=id_, commit=sha, at=cursor_workplace.at(5))
    with cursor_workplace.history() as history:
        (after,) = history.get_commit(sha, checkout.folder).sessions
    assert after.score == pytest.approx(before.score + 0.1, abs=0.002)
