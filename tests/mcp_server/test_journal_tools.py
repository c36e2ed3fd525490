"""The tools and the prompt of the journal."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from backscroll.mcp.call import ServerOptions
from backscroll.mcp.server import tool_list
from tests.journal.conftest import REASON, Workplace
from tests.mcp_server.write_server import WriteClient, start_write_server

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")


@pytest.fixture
def workplace(tmp_path: Path) -> Workplace:
    workplace = Workplace(tmp_path)
    with workplace.history() as history:
        history.sync()
    return workplace


@pytest.fixture
def client(workplace: Workplace) -> Iterator[WriteClient]:
    with start_write_server(workplace, client="claude-code") as client:
        yield client


def _files(workplace: Workplace) -> list[Path]:
    return sorted((workplace.home / "journal").rglob("*-journal.md"))


def test_only_the_context_is_available_without_writes() -> None:
    names = [tool.name for tool in tool_list(ServerOptions()) if tool.name.startswith("journal")]
    assert names == ["journal_context"]


def test_the_context_has_the_conversation_without_secrets(client: WriteClient, workplace: Workplace) -> None:
    document = client.document("journal_context", repository=str(workplace.repository))
    assert document["sha"] == workplace.second
    assert REASON in document["material"] and REASON in document["sections"]["decisions"]
    assert "ghp_" not in str(document)
    assert "path" not in document
    assert _files(workplace) == []


def test_an_entry_with_verbatim_quotes_is_written(client: WriteClient, workplace: Workplace) -> None:
    document = client.document(
        "journal_write_entry",
        repository=str(workplace.repository),
        summary="Prices are stored in cents.",
        decisions=f"- Cents, for this reason: “{REASON}”",
        discussion="> User: How should we store prices?",
    )
    assert document["status"] == "written" and document["result"]["is_new"] is True
    (path,) = _files(workplace)
    text = path.read_text()
    assert "Written by claude-code; every quote was checked." in text
    assert "> **User**" in text


def test_an_entry_with_an_invented_quote_is_not_written(client: WriteClient, workplace: Workplace) -> None:
    document = client.document(
        "journal_write_entry",
        repository=str(workplace.repository),
        summary="The user said “Prices in cents were my idea from the start.”",
    )
    assert document["status"] == "rejected"
    assert document["problems"] == [{"text": "Prices in cents were my idea from the start."}]
    assert document["hints"][0] == "Nothing was written: 1 quote not verbatim."
    assert _files(workplace) == []


def test_notes_are_appended(client: WriteClient, workplace: Workplace) -> None:
    repository = str(workplace.repository)
    client.document("journal_add_reflection", text="Cents were right.", repository=repository)
    document = client.document("journal_capture_context", text="VAT changes in July.", repository=repository)
    text = Path(document["path"]).read_text()
    assert text.index("Cents were right.") < text.index("VAT changes in July.")


def test_errors_name_the_argument(client: WriteClient, workplace: Workplace) -> None:
    assert "is not an absolute path" in client.error("journal_context", repository="shop")["message"]
    folder = str(workplace.folder)
    assert "is not in a git repository" in client.error("journal_context", repository=folder)["message"]
    missing = client.error("journal_context", repository=str(workplace.repository), revision="nonesuch")
    assert "nonesuch" in missing["message"]


def test_the_prompt_contains_instructions_and_material(client: WriteClient, workplace: Workplace) -> None:
    arguments = {"commit": "HEAD", "repository": str(workplace.repository)}
    result = client.run(lambda one: one.get_prompt("commit-story", arguments))
    text = result.messages[0].content.text
    assert "Copy every quote exactly" in text and REASON in text
    assert f"mcp__backscroll__journal_write_entry), revision={workplace.second}" in text
    assert "ghp_" not in text
