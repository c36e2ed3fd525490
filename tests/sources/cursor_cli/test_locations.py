"""Roots and units of the Cursor CLI."""

import json
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from backscroll.config import Machine
from backscroll.sources.cursor_cli import CursorCli, locations
from backscroll.sources.cursor_cli.store_reader import display_name

from .store_builder import CWD, Store, main_session, read_all, read_one, user


def test_the_roots_of_all_versions_are_searched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locations, "_WINDOWS_HOMES", tmp_path / "nowhere")
    assert CursorCli().roots(Machine(tmp_path)) == [tmp_path / ".cursor", tmp_path / ".config" / "cursor"]
    environ = {"CURSOR_CONFIG_DIR": "/etc/one", "CURSOR_DATA_DIR": "~/two", "XDG_CONFIG_HOME": "/xdg"}
    assert CursorCli().roots(Machine(tmp_path, environ)) == [
        Path("/etc/one"),
        tmp_path / "two",
        tmp_path / ".cursor",
        Path("/xdg/cursor"),
    ]


def test_a_root_that_links_to_another_is_searched_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locations, "_WINDOWS_HOMES", tmp_path / "nowhere")
    (tmp_path / ".config").mkdir()
    (tmp_path / ".config" / "cursor").symlink_to(tmp_path / ".cursor")
    assert CursorCli().roots(Machine(tmp_path)) == [tmp_path / ".cursor"]


def test_windows_roots_are_found_from_wsl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "zoe" / ".cursor").mkdir(parents=True)
    monkeypatch.setattr(locations, "_WINDOWS_HOMES", tmp_path)
    assert tmp_path / "zoe" / ".cursor" in CursorCli().roots(Machine(Path("/home/zoe")))


def test_a_missing_root_has_no_units(tmp_path: Path) -> None:
    assert list(CursorCli().units(tmp_path / "nowhere")) == []


def test_a_session_without_a_store_is_a_draft(tmp_path: Path) -> None:
    folder = tmp_path / "chats" / "11e9fe063b91149eb10c6daf331adfaa" / "id-1"
    folder.mkdir(parents=True)
    (folder / "meta.json").write_text(
        json.dumps({"schemaVersion": 1, "cwd": CWD, "title": "T", "hasConversation": False})
    )
    content = read_one(tmp_path)
    session = main_session(content)
    assert (session.opening.id, session.closing.visibility, session.messages) == ("id-1", "draft", ())
    assert session.closing.workspace is not None
    assert "verified" in session.closing.workspace.evidence
    assert content.counts.kinds == {"meta.json": 1}


def test_a_session_of_another_editor_has_its_own_store_name(tmp_path: Path) -> None:
    store = Store(tmp_path).with_messages(user("go"))
    store.folder = tmp_path / "acp-sessions" / store.id
    store.path = store.folder / "store.db"
    store.write(sidecar={"schemaVersion": 1, "cwd": CWD})
    session = main_session(read_one(tmp_path))
    assert (session.opening.store, session.opening.id) == ("acp", store.id)
    assert session.closing.workspace is not None
    assert session.closing.workspace.path == CWD


def test_a_draft_without_times_gets_the_time_of_its_file(tmp_path: Path) -> None:
    path = tmp_path / "acp-sessions" / "some-id" / "meta.json"
    path.parent.mkdir(parents=True)
    path.write_text('{"schemaVersion": 1, "cwd": "/home/dev/shop"}')
    os.utime(path, (1_790_000_000, 1_790_000_000))
    closing = main_session(read_one(tmp_path)).closing
    assert closing.created_at == datetime.fromtimestamp(1_790_000_000, UTC)
    assert closing.created_at_source == "file"


def test_prompts_without_a_session_are_counted(tmp_path: Path) -> None:
    (tmp_path / "prompt_history.json").write_text('["one", "two"]')
    Store(tmp_path).with_messages(user("go")).write()
    next(tmp_path.glob("chats/*/*")).joinpath("prompt_history.json").write_text('["three"]')
    prompt_counts = [content.counts.kinds.get("prompt without a session") for content in read_all(tmp_path)]
    assert prompt_counts == [None, 1, 2]


@pytest.mark.parametrize("content", ["{", "{}", "7"])
def test_an_invalid_prompt_list_is_a_problem(tmp_path: Path, content: str) -> None:
    (tmp_path / "prompt_history.json").write_text(content)
    assert len(read_one(tmp_path).problems) == 1


def test_links_out_of_the_root_are_not_followed(tmp_path: Path) -> None:
    outside, root = tmp_path / "outside", tmp_path / "root"
    Store(outside).with_messages(user("not in the root")).write()
    hash_folder = next((outside / "chats").iterdir())
    (root / "chats").mkdir(parents=True)
    (root / "chats" / hash_folder.name).symlink_to(hash_folder)
    (root / "projects").symlink_to(outside)
    assert list(CursorCli().units(root)) == []


def test_the_fingerprint_changes_with_the_store_and_with_meta_json(tmp_path: Path) -> None:
    store = Store(tmp_path).with_messages(user("go")).write()
    source = CursorCli()
    (before,) = source.units(tmp_path)
    list(source.read(before))
    assert list(source.units(tmp_path)) == [before]
    (store.folder / "meta.json").write_text("{}")
    (after,) = source.units(tmp_path)
    assert (after.fingerprint != before.fingerprint, after.session_id) == (True, store.id)


def test_reading_does_not_change_the_folder(tmp_path: Path) -> None:
    Store(tmp_path).with_messages(user("go")).write(sidecar={"schemaVersion": 1})

    def state() -> dict[str, tuple[int, int]]:
        return {str(path): (path.stat().st_mtime_ns, path.stat().st_size) for path in tmp_path.rglob("*")}

    before = state()
    read_all(tmp_path)
    assert state() == before


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("claude-4.5-opus-high-thinking", "Claude Opus 4.5 (Thinking)"),
        ("claude-4-sonnet", "Claude Sonnet 4"),
        ("gpt-4o", "GPT-4o"),
        ("gpt-4.1", "GPT-4.1"),
        ("gemini-2.5-pro", "Gemini 2.5 Pro"),
        ("claude-4.6-opus-max-thinking", "Claude Opus 4.6 (Thinking)"),
        ("claude-opus-4-7-thinking-high", "Claude Opus 4.7 (Thinking)"),
        ("claude-opus-5", "Claude Opus 5"),
        ("gpt-5-codex-high", "GPT-5 Codex High"),
        ("composer-2-fast", "Composer 2 Fast"),
        ("grok-code-fast-1", "Grok Code Fast 1"),
        ("model-x", "model-x"),
    ],
)
def test_models_have_display_names(model: str, name: str) -> None:
    assert display_name(model) == name


def test_raw_records_have_no_secrets(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.meta |= {"blobEncryptionKey": "c2VjcmV0LWtleQ==", "flavour": "x"}
    store.with_messages(user("go")).write(sidecar={"schemaVersion": 1})
    source = CursorCli()
    records = dict(source.raw_records(next(source.units(tmp_path))))
    assert records.keys() == {"meta", "meta.json", "blob/user", "blob/root"}
    assert records["blob/root"] == {"field_1": None}
    assert "flavour" in records["meta"]
    assert "c2VjcmV0" not in repr(records)
