"""Databases and files next to the main database: code tracking, conversation search, images."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from backscroll.testing import database
from backscroll.testing.cursor.workspaces import Workspace
from backscroll.testing.database import Cell

_TRACKING_TABLES = {
    "ai_code_hashes": (
        "hash TEXT PRIMARY KEY, source TEXT NOT NULL, fileExtension TEXT, fileName TEXT, requestId TEXT,"
        " conversationId TEXT, timestamp INTEGER, model TEXT, createdAt INTEGER NOT NULL"
    ),
    "scored_commits": (
        "commitHash TEXT, branchName TEXT, scoredAt INTEGER, linesAdded INTEGER, linesDeleted INTEGER,"
        " tabLinesAdded INTEGER, tabLinesDeleted INTEGER, composerLinesAdded INTEGER,"
        " composerLinesDeleted INTEGER, humanLinesAdded INTEGER, humanLinesDeleted INTEGER,"
        " blankLinesAdded INTEGER, blankLinesDeleted INTEGER, commitMessage TEXT, commitDate TEXT,"
        " v1AiPercentage TEXT, v2AiPercentage TEXT, PRIMARY KEY (commitHash, branchName)"
    ),
    "conversation_summaries": (
        "conversationId TEXT PRIMARY KEY, title TEXT, tldr TEXT, overview TEXT, summaryBullets TEXT,"
        " model TEXT, mode TEXT, updatedAt INTEGER"
    ),
    "ai_deleted_files": "gitPath TEXT, conversationId TEXT, model TEXT, deletedAt INTEGER",
    "tracked_file_content": (
        "gitPath TEXT, content TEXT, conversationId TEXT, model TEXT, createdAt INTEGER"
    ),
    "tracking_state": "key TEXT PRIMARY KEY, value TEXT",
}

_SEARCH_TABLES = {
    "conversations": (
        "fts_rowid INTEGER PRIMARY KEY, source TEXT, scope TEXT, id TEXT, title TEXT, branches TEXT,"
        " updated_at INTEGER, is_archived INTEGER, root_fingerprint TEXT, cache_fingerprint TEXT"
    ),
    "conversation_search_candidates": "id TEXT PRIMARY KEY, updated_at INTEGER",
    "conversation_search_reconciliation": "key TEXT PRIMARY KEY, value TEXT",
    "conversation_search_settings": "key TEXT PRIMARY KEY, value TEXT",
}

_ONE_PIXEL_PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010806000000"
    "1f15c4890000000d49444154789c626001000000ffff03000006000557bfabd40000000049454e44ae426082"
)


def write_tracking(
    dot_cursor: Path,
    *,
    conversation: str,
    title: str = "Fix basket totals",
    model: str = "model-x-high",
    commit: str = "0" * 40,
    at: int = 1790000420000,
) -> Path:
    """Write the code-tracking database below ``~/.cursor``: code hashes, two commits and a summary."""
    path = dot_cursor / "ai-tracking/ai-code-tracking.db"
    hashes = [
        (f"{index:08x}", "composer", ".py", "cart.py", f"r-{index // 2}", conversation, at, model, at)
        for index in range(4)
    ]
    commits: list[tuple[Cell, ...]] = [
        (
            commit,
            "main",
            at,
            10,
            2,
            0,
            0,
            8,
            1,
            2,
            1,
            0,
            0,
            "Round once",
            "Mon Sep 21 16:20:20 2026 +0200",
            "80.0",
            "",
        ),
        (
            f"1{commit[1:]}",
            "main",
            at,
            4,
            0,
            0,
            0,
            0,
            0,
            4,
            0,
            0,
            0,
            "By hand",
            "2026-09-21T14:20:20Z",
            0.0,
            0.0,
        ),
    ]
    summary = (conversation, title, "Totals", "Totals were rounded twice.", "[]", model, "agent", at)
    rows = [_rows("ai_code_hashes", hashes), _rows("scored_commits", commits)]
    rows.append(_rows("conversation_summaries", [summary]))
    database.write(path, _schema(_TRACKING_TABLES), rows, journal="delete", mtime=at)
    return path


def write_search(root: Path, sessions: Sequence[tuple[str, str, str]], *, at: int = 1790000420000) -> Path:
    """Write the search database of the IDE. Each session is an id, a title and a body."""
    path = root / "User/globalStorage/conversation-search.db"
    conversations = [
        (index, "local", "", id, title, "main", at, 0, "", "")
        for index, (id, title, _) in enumerate(sessions, 1)
    ]
    texts = [(index, title, body, "main") for index, (_, title, body) in enumerate(sessions, 1)]
    schema = _schema(_SEARCH_TABLES)
    schema += "create virtual table if not exists conversation_fts using fts5(title, body, branches);"
    bodies = database.insert_statement("conversation_fts", ("rowid", "title", "body", "branches"), texts)
    database.write(path, schema, [_rows("conversations", conversations), bodies], mtime=at)
    return path


def write_image(
    root: Path,
    workspace: Workspace,
    *,
    name: str = "screenshot",
    uuid: str = "5f0e0000-0000-4000-8000-00000000cafe",
) -> Path:
    """Write an image into the ``images`` folder of a workspace."""
    path = root / "User/workspaceStorage" / workspace.id / "images" / f"{name}-{uuid}.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(_ONE_PIXEL_PNG)
    return path


def _schema(tables: Mapping[str, str]) -> str:
    return "".join(f"create table if not exists {name} ({columns});\n" for name, columns in tables.items())


def _rows(table: str, rows: Sequence[Sequence[Cell]]) -> database.Statement:
    placeholders = ", ".join("?" * len(rows[0]))
    return f"insert or replace into {table} values ({placeholders})", rows  # noqa: S608
