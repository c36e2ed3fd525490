"""The health page shows what doctor says, and creates backups."""

import re
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from pathlib import Path
from threading import Event

import pytest
from starlette.testclient import TestClient

from backscroll.config import NamedRoot
from backscroll.errors import BackupError
from backscroll.history.backups import Backups
from backscroll.history.history import History
from backscroll.model.backup import BackupProgress, BackupResult
from backscroll.model.problem import AuditedRoot, SourceCounts
from backscroll.model.statistics import MonthGrowth
from backscroll.render.humanize import format_size
from backscroll.testing.claude_code import Transcript
from backscroll.web.app import create_app
from backscroll.web.pages.health import Growth, _find_retentions
from backscroll.web.served_history import BackupJob, ResultCache
from tests.web.conftest import ADDRESS, CLOCKS, TOKEN, OpenHistory, text_of

ID = "10000000-0000-4000-8000-000000000007"
TIMEOUT_SECONDS = 20.0


@pytest.fixture
def small(tmp_path: Path) -> OpenHistory:
    """A history of one session with a line that is not JSON, and one of an unknown type."""
    file = Transcript(ID, seed=7, cwd="/home/zoe/ferry").user("ferry times").assistant("At nine.")
    path = file.write(tmp_path / "claude")
    with path.open("a", encoding="utf-8") as lines:
        lines.write('<script>alert(1)\n{"type": "sonnet", "uuid": "x"}\n')
    roots = [NamedRoot("claude-code", tmp_path / "claude"), NamedRoot("cursor", tmp_path / "cursor")]

    def open_history() -> History:
        return History(roots=roots, home=tmp_path / "home")

    with open_history() as history:
        history.sync()
    return open_history


@contextmanager
def _client(open_history: OpenHistory) -> Iterator[TestClient]:
    app = create_app(open_history, TOKEN, auto_sync=False)
    with TestClient(app, base_url=ADDRESS, headers={"Origin": ADDRESS}) as client:
        client.get(f"/launch?token={TOKEN}")
        yield client


def _wait_for_backup(client: TestClient) -> str:
    end = time.monotonic() + TIMEOUT_SECONDS
    while "data-running" in (html := client.get("/health").text):
        assert time.monotonic() < end
        time.sleep(0.02)
    return html


def _numbers(root: AuditedRoot | SourceCounts) -> tuple[object, ...]:
    numbers = (root.records, root.parsed, root.ignored, root.problems)
    return root.source, root.path, root.exists, numbers, root.unknown


def test_stored_counts_equal_those_of_an_audit(small: OpenHistory, demo_history: OpenHistory) -> None:
    for open_history in (small, demo_history):
        with open_history() as history:
            audit, counts = history.source_files.audit(), history.source_files.counts()
            problem_count, problems = history.source_files.problems(100)
        assert [_numbers(root) for root in counts] == [_numbers(root) for root in audit.places]
        assert [root.units for root in counts] == [sum(root.units.values()) for root in audit.places]
        assert problem_count == len(problems) == len(audit.problems)
        assert {problem.code for problem in problems} == {problem.code for problem in audit.problems}


def test_health_shows_counts_events_and_the_archive(client: TestClient, demo_history: OpenHistory) -> None:
    html = client.get("/health").text
    text = text_of(html)
    with demo_history() as history:
        status = history.archive_admin.status()
        roots = history.source_files.counts()
    for root in roots:
        numbers = (root.units, root.records, root.parsed, root.ignored, root.problems)
        assert " ".join(f"{number:,}" for number in numbers) in text
    for expected in (
        "No problems found.",
        "1 session deleted by the tool",
        f"{status.units:,} read, {status.gone:,} since deleted",
        status.path,
    ):
        assert expected in text


def test_health_names_problems_and_missing_folders(small: OpenHistory) -> None:
    with _client(small) as client:
        html = client.get("/health").text
    text = text_of(html)
    assert "<script>alert" not in html
    assert f"{ID}.jsonl , line 3: " in text
    assert "sonnet : 1" in text
    assert "doctor --shape" in text
    assert "1 folder not found" in text


def test_health_of_an_empty_archive_says_that_nothing_was_found(tmp_path: Path) -> None:
    roots = [NamedRoot("claude-code", tmp_path / "claude")]
    with _client(lambda: History(roots=roots, home=tmp_path / "home")) as client:
        response = client.get("/health")
    assert response.status_code == 200
    assert "1 folder not found" in response.text
    assert "No backups in this folder" in response.text


def test_the_button_creates_and_verifies_a_backup(small: OpenHistory) -> None:
    with _client(small) as client:
        response = client.post("/health", data={"action": "backup"}, follow_redirects=False)
        assert (response.status_code, response.headers["location"]) == (303, "/health#backups")
        text = text_of(_wait_for_backup(client))
    with small() as history:
        (backup,) = history.backups.list()
        assert history.validate_backup(backup.path).status == "valid"
    assert backup.path in text
    assert re.search(r"Valid: \d+ files checked\.", text)
    assert re.search(rf"{Path(backup.path).name} .* MB 1 2 complete", text)


def test_without_the_token_the_page_explains_what_to_do(client: TestClient) -> None:
    html = client.get("/health").text
    assert 'method="post"' not in html
    assert "it contains the token" in text_of(html)
    assert client.post("/health", data={"action": "backup"}, headers={"Origin": ADDRESS}).status_code == 401


def test_a_backup_requires_the_origin_of_the_server(writer: TestClient) -> None:
    del writer.headers["origin"]
    assert writer.post("/health", data={"action": "backup"}).status_code == 403
    headers = {"Origin": "https://evil.example"}
    assert writer.post("/health", data={"action": "backup"}, headers=headers).status_code == 403
    assert "data-running" not in writer.get("/health").text


def test_an_unknown_action_is_refused(writer: TestClient) -> None:
    assert writer.post("/health", data={"action": "forget"}).status_code == 400


def test_other_pages_answer_while_a_backup_runs_and_a_second_one_does_not_start(
    demo_history: OpenHistory, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_end = Event()
    started: list[int] = []

    def create(self: Backups, *_: object, progress: object = None, **__: object) -> BackupResult:
        started.append(1)
        assert callable(progress)
        progress(BackupProgress("Copying databases", 30, 100))
        may_end.wait(TIMEOUT_SECONDS)
        raise BackupError("The disk <is> full.", Path("x"))

    monkeypatch.setattr(Backups, "create", create)
    with _client(demo_history) as client:
        for _ in range(10):  # more than there are worker threads
            client.post("/health", data={"action": "backup"}, follow_redirects=False)
        assert client.get(f"/sessions/{CLOCKS}").status_code == 200
        html = client.get("/health").text
        assert "Copying databases: 30 %" in text_of(html)
        assert 'value="backup"' not in html
        may_end.set()
        text = text_of(_wait_for_backup(client))
    assert started == [1]
    assert "The backup was not created. The disk &lt;is&gt; full." in text


def test_closing_the_server_cancels_a_backup_and_leaves_no_file(
    small: OpenHistory, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = BackupJob(small)
    has_started, may_continue = Event(), Event()
    report = job._report

    def report_slowly(progress: BackupProgress) -> None:
        has_started.set()
        may_continue.wait(TIMEOUT_SECONDS)
        report(progress)

    monkeypatch.setattr(job, "_report", report_slowly)
    job.start()
    assert has_started.wait(TIMEOUT_SECONDS)
    job._is_cancelled.set()
    may_continue.set()
    job.close()
    assert job.state is not None
    assert not job.state.is_running
    with small() as history:
        folder = history.backups.folder
    assert not folder.exists() or not list(folder.iterdir())


def test_growth_adds_up_to_everything_in_the_archive(demo_history: OpenHistory, client: TestClient) -> None:
    with demo_history() as history:
        months = history.archive_admin.growth()
        status = history.archive_admin.status()
    with closing(sqlite3.connect(status.path)) as db:
        segments = db.execute("select sum(size) from raw_segment").fetchone()[0]
        rows = db.execute("select sum(size) from raw_row").fetchone()[0]
    assert sum(month.sessions for month in months) == status.sessions
    assert sum(month.messages for month in months) == status.session_messages
    assert sum(month.original_bytes for month in months) == segments + rows
    assert [month.month for month in months] == [f"2026-{month:02}" for month in range(7, 12)]
    html = client.get("/health").text
    assert f"2026-11: {format_size(segments + rows)} in total" in html
    assert "2026-09" in text_of(html)


def test_growth_has_every_month_between_the_first_and_the_last() -> None:
    growth = Growth([MonthGrowth("2025-11", 2, 10, 3_000_000), MonthGrowth("2026-02", 1, 5, 1_000_000)])
    assert [(row.month, row.sessions, row.total) for row in growth.rows] == [
        ("2026-02", 1, 4_000_000),
        ("2026-01", 0, 3_000_000),
        ("2025-12", 0, 3_000_000),
        ("2025-11", 2, 3_000_000),
    ]
    assert "2026-01: 3.0 MB in total, 0.0 MB added, 0 sessions" in str(growth.chart)


def test_an_empty_archive_has_no_growth(tmp_path: Path) -> None:
    def open_history() -> History:
        return History(roots=[NamedRoot("claude-code", tmp_path)], home=tmp_path / "home")

    with _client(open_history) as client:
        response = client.get("/health")
    assert response.status_code == 200
    assert "growth-title" not in response.text


def test_the_files_of_a_tool_are_not_looked_at_for_every_page(
    demo_history: OpenHistory, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    calls: list[object] = []
    find = History.retentions
    monkeypatch.setattr(History, "retentions", lambda *given: calls.append(given) or find(*given))
    monkeypatch.setattr(
        "backscroll.web.pages.health._RETENTIONS", ResultCache(_find_retentions, timedelta(minutes=10))
    )
    with _client(demo_history) as client:
        for path in ("/", "/health", "/", "/health"):
            assert client.get(path).status_code == 200
    assert len(calls) == 1
