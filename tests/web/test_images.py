"""Images that a record only names: files of the tool."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect
from starlette.testclient import TestClient
from starlette.types import ASGIApp

from backscroll.config import NamedRoot
from backscroll.history.history import History
from backscroll.testing import cursor
from backscroll.web.app import create_app
from tests.web.browser import CHROMIUM, open_page, run_server
from tests.web.conftest import ADDRESS, TOKEN, text_of

UUID = "5f0e0000-0000-4000-8000-00000000beef"
SESSION_ID = "751b72bc-0000-4000-8000-000000000001"
SVG = b'<svg xmlns="http://www.w3.org/2000/svg"/>'


def _open(folder: Path) -> History:
    return History(roots=[NamedRoot("cursor", folder / "Cursor")], home=folder / "home")


@contextmanager
def _serve(folder: Path, path: str) -> Iterator[tuple[TestClient, str]]:
    """Serve a session whose prompt has an image with this path. Yield the client and the page."""
    home = cursor.Home(folder / "Cursor")
    image = {"uuid": UUID, "path": path, "loadedAt": 1790000000000}
    context = {"fileSelections": [], "selectedImages": [image]}
    home.composer([cursor.user("See the picture", context=context)], id=SESSION_ID)
    home.write()
    with _open(folder) as history:
        history.sync()
    app = create_app(lambda: _open(folder), TOKEN, auto_sync=False)
    with TestClient(app, base_url=ADDRESS) as client:
        yield client, client.get(f"/sessions/cursor:{SESSION_ID}").text


def _image_url(html: str) -> str:
    (url,) = re.findall(r'<img src="([^"]+)"', html)
    assert isinstance(url, str)
    return url


@pytest.mark.parametrize("folder", ["images", "/home/old/.config/Cursor/User/workspaceStorage/1/images"])
def test_an_image_in_the_folder_of_cursor_is_shown(tmp_path: Path, folder: str) -> None:
    file = cursor.write_image(tmp_path / "Cursor", cursor.SHOP, uuid=UUID)
    with _serve(tmp_path, f"{folder}/{file.name}") as (client, html):
        image = client.get(_image_url(html))
        assert image.headers["content-type"] == "image/png"
        assert image.content == file.read_bytes()


def test_an_image_that_was_deleted_is_not_found(tmp_path: Path) -> None:
    with _serve(tmp_path, f"images/screenshot-{UUID}.png") as (client, html):
        response = client.get(_image_url(html))
        assert response.status_code == 404
        assert "is not available" in text_of(response.text)


@pytest.mark.parametrize("is_link", [False, True])
def test_an_image_outside_of_the_folder_of_cursor_is_not_read(tmp_path: Path, is_link: bool) -> None:
    inside = cursor.write_image(tmp_path / "Cursor", cursor.SHOP, uuid=UUID)
    outside = inside.rename(tmp_path / f"private-{UUID}.png")
    if is_link:
        (inside.parent / outside.name).symlink_to(outside)
    with _serve(tmp_path, str(outside)) as (client, html):
        assert client.get(_image_url(html)).status_code == 404


def test_a_file_that_is_not_an_image_is_not_read(tmp_path: Path) -> None:
    file = cursor.write_image(tmp_path / "Cursor", cursor.SHOP, uuid=UUID)
    file.write_bytes(SVG)
    with _serve(tmp_path, f"images/{file.name}") as (client, html):
        assert client.get(_image_url(html)).status_code == 404


def test_an_svg_is_named_and_not_shown(tmp_path: Path) -> None:
    with _serve(tmp_path, f"images/plan-{UUID}.svg") as (_, html):
        assert "<img" not in html
        assert f"The image plan-{UUID}.svg is not shown, because it is an SVG." in text_of(html)


@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
def test_the_page_says_that_an_image_is_not_available(tmp_path: Path, browser: Browser) -> None:
    with _serve(tmp_path, f"images/screenshot-{UUID}.png"):
        pass

    def create() -> ASGIApp:
        return create_app(lambda: _open(tmp_path), TOKEN, auto_sync=False)

    with run_server(create) as address, open_page(browser, address) as tab:
        page = tab.open(f"/sessions/cursor:{SESSION_ID}")
        expect(page.locator(".no-image")).to_contain_text(
            f"The image screenshot-{UUID}.png is not available."
        )
        tab.problems.clear()  # the browser logs that the image was not found
