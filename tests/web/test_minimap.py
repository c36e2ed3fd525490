"""The minimap shows the whole session and links to every part of it."""

import re
from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

from backscroll.history.history import History
from backscroll.web.app import create_app
from backscroll.web.pages import session
from backscroll.web.pages.session import Minimap, read_minimap
from tests.web.conftest import ADDRESS, CLOCKS, TOKEN, OpenHistory
from tests.web.long_session import EDIT_TURN, FAILURE_TURN, LONG_ID, LONG_URL, TURNS, write_long_history


@pytest.fixture(scope="module")
def long_history(tmp_path_factory: pytest.TempPathFactory) -> OpenHistory:
    return write_long_history(tmp_path_factory.mktemp("long"))


@pytest.fixture(scope="module")
def long_client(long_history: OpenHistory) -> Iterator[TestClient]:
    app = create_app(long_history, TOKEN, auto_sync=False)
    with TestClient(app, base_url=ADDRESS) as client:
        yield client


@pytest.fixture
def history(long_history: OpenHistory) -> Iterator[History]:
    with long_history() as history:
        yield history


def minimap_of(history: History, **options: object) -> Minimap:
    summary = history.find(LONG_ID)
    found = read_minimap(history, summary, summary.ref, **options)  # type: ignore[arg-type]
    assert found is not None
    return found


def test_a_short_session_has_no_minimap(client: TestClient) -> None:
    assert 'class="minimap"' not in client.get(f"/sessions/{CLOCKS}").text
    assert client.get(f"/sessions/{CLOCKS}/minimap").text == ""


def test_the_rows_cover_the_whole_session(history: History) -> None:
    found = minimap_of(history)
    assert len(found.rows) == session.MAX_MINIMAP_ROWS
    assert found.total > 3 * TURNS
    assert sum(row.height for row in found.rows) == pytest.approx(session.MINIMAP_HEIGHT)
    for one, other in zip(found.rows, found.rows[1:], strict=False):
        assert one.y + one.height == pytest.approx(other.y)
    assert sum(len(row.stretch.prompts) for row in found.rows) == TURNS


def test_every_row_leads_to_a_message_in_it(history: History, long_client: TestClient) -> None:
    for row in minimap_of(history).rows[::20]:
        assert row.stretch.start <= row.position < row.stretch.end
        assert f'id="m{row.position}"' in long_client.get(row.url.partition("#")[0]).text
        assert row.url.endswith(f"#m{row.position}")


def test_edits_failures_and_compactions_are_shown_where_they_are(history: History) -> None:
    found = minimap_of(history)
    starts = [position for row in found.rows for position in row.stretch.prompts]
    edited = [row for row in found.rows if row.edit_width]
    failed = [row for row in found.rows if row.stretch.error_count]
    compacted = [row for row in found.rows if row.stretch.has_compaction]
    assert len(edited) == len(failed) == len(compacted) == 1
    for row, turn in ((edited[0], EDIT_TURN), (failed[0], FAILURE_TURN)):
        assert starts[turn] <= row.stretch.end and row.stretch.start < starts[turn + 1]
    assert "+3 −2 lines" in edited[0].label
    assert "1 error" in failed[0].label
    assert "compaction" in compacted[0].label


def test_matches_are_marked_and_linked(history: History) -> None:
    rows = [row for row in minimap_of(history, matches=[7, 8, 200]).rows if row.has_match]
    assert {row.position for row in rows} >= {7, 200}
    assert len(rows) in (2, 3)
    assert not any(row.has_match for row in minimap_of(history).rows)


def test_the_page_shows_the_minimap_and_the_loaded_messages_in_it(long_client: TestClient) -> None:
    html = long_client.get(f"{LONG_URL}?from=120").text
    assert html.count('class="hit"') == session.MAX_MINIMAP_ROWS
    assert html.count('tabindex="0"') == 1
    current = re.search(r'data-from="(\d+)" tabindex="0" aria-current="true"', html)
    assert current is not None
    assert int(current[1]) <= 120 < int(current[1]) + 4
    assert re.search(r'class="view" x="0" width="40" y="3\d\d\.', html)


def test_the_part_for_live_updates_is_the_same_minimap(long_client: TestClient) -> None:
    part = long_client.get(f"{LONG_URL}/minimap").text
    assert part.lstrip().startswith('<nav class="minimap"')
    assert part.count('class="hit"') == session.MAX_MINIMAP_ROWS


def test_everything_stays_shown_after_a_jump(long_client: TestClient) -> None:
    assert re.search(r'href="[^"]*\?at=\d+&amp;all=1#m\d+"', long_client.get(f"{LONG_URL}?all=1").text)
    assert "all=1#m" not in long_client.get(LONG_URL).text
