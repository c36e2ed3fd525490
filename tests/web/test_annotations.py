"""Stars, tags, notes and titles can be changed in the browser."""

import pytest
from starlette.testclient import TestClient

from tests.web.conftest import CLOCKS, OpenHistory

URL = f"/sessions/{CLOCKS}"


def change(writer: TestClient, **fields: str) -> str:
    response = writer.post(URL, data=fields)
    assert response.status_code == 200
    return response.text


def test_a_star_is_added_and_removed(writer: TestClient) -> None:
    assert "Remove the star" in change(writer, action="star")
    assert writer.get("/sessions?starred=1").text.count('class="row-link"') == 1
    assert "Remove the star" not in change(writer, action="unstar")


def test_tags_are_added_listed_and_removed(writer: TestClient) -> None:
    assert "#clocks" in change(writer, action="tag", text="Clocks, #utc")
    assert writer.get("/sessions?tag=utc").text.count('class="row-link"') == 1
    change(writer, action="untag", text="utc")
    assert "#clocks" not in change(writer, action="untag", text="clocks")


def test_a_note_is_added_edited_and_deleted(writer: TestClient, demo_history: OpenHistory) -> None:
    change(writer, action="add-note", text="Look at <b>store.py</b>")
    assert "Look at &lt;b&gt;store.py" in writer.get(URL).text
    assert "Look at" in writer.get("/search?q=note+store.py").text
    with demo_history() as history:
        (note,) = history.find(CLOCKS).notes
    assert "Done." in change(writer, action="edit-note", number=str(note.number), text="Done.")
    change(writer, action="delete-note", number=str(note.number))
    with demo_history() as history:
        assert history.find(CLOCKS).notes == ()


def test_a_title_is_replaced_and_restored(writer: TestClient) -> None:
    assert "<h1>Doubled hour</h1>" in change(writer, action="rename", text=" Doubled  hour ")
    assert "<h1>503 in the night the clocks went back</h1>" in change(writer, action="rename", text="")


@pytest.mark.parametrize(
    "fields",
    [
        {"action": "explode"},
        {},
        {"action": "tag", "text": "*"},
        {"action": "add-note", "text": "  "},
        {"action": "edit-note", "number": "x", "text": "y"},
        {"action": "delete-note", "number": "77"},
    ],
)
def test_an_invalid_change_is_explained(writer: TestClient, fields: dict[str, str]) -> None:
    assert writer.post(URL, data=fields).status_code == 400


@pytest.mark.parametrize(
    "target", ["https://evil.example", "//evil.example", "/\\evil.example", "javascript:x"]
)
def test_a_change_never_redirects_to_another_site(writer: TestClient, target: str) -> None:
    response = writer.post(URL, data={"action": "unstar", "next": target}, follow_redirects=False)
    assert response.headers["location"] == URL


def test_without_the_token_the_page_has_no_forms_to_change_anything(client: TestClient) -> None:
    html = client.get(URL).text
    assert 'method="post"' not in html
    assert "open the address that" in html


def test_a_change_returns_to_the_address_of_the_page(writer: TestClient) -> None:
    html = writer.get(f"{URL}?find=utc&at=2").text
    assert html.count('method="post"') == html.count(f'name="next" value="{URL}?find=utc&amp;at=2"')
    response = writer.post(URL, data={"action": "star", "next": f"{URL}?find=utc&at=2#m2"})
    assert str(response.url).endswith(f"{URL}?find=utc&at=2#m2")
    change(writer, action="unstar")
