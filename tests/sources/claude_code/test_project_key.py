"""The name of a project's folder."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backscroll.sources.claude_code.workspace import matches, project_key
from backscroll.testing.claude_code import project_key as builder_key

LONG = "/srv/" + "/".join(f"segment{number:02}" for number in range(25))


@pytest.mark.parametrize(
    ("path", "key"),
    [
        ("/home/zoe/my_app.v2", "-home-zoe-my-app-v2"),
        ("C:\\Users\\Zoe\\dev", "C--Users-Zoe-dev"),
        ("/srv/日本/x", "-srv----x"),
        ("/srv/🚀/x", "-srv----x"),
    ],
)
def test_all_characters_but_letters_and_digits_become_dashes(path: str, key: str) -> None:
    assert project_key(path) == key


def test_the_key_of_a_long_path_is_truncated_and_has_a_hash() -> None:
    key = project_key(LONG)
    assert len(key) == 207
    assert key.endswith("-segment18-segme-kme5to")


def test_keys_with_another_case_or_from_old_versions_match() -> None:
    assert matches("c:\\Users\\Zoe\\dev", "C--Users-Zoe-dev")
    assert matches("/home/zoe/my_app", "-home-zoe-my_app")
    assert matches(LONG, project_key(LONG)[:201] + "otherhash")
    assert not matches("/home/zoe/app2", "-home-zoe-app")


@given(st.text())
def test_every_path_matches_its_own_key(path: str) -> None:
    assert matches(path, project_key(path))


def test_a_decomposed_path_gives_the_key_of_its_form_on_disk() -> None:
    decomposed, composed = "/srv/cafe\u0301", "/srv/caf\u00e9"
    assert project_key(decomposed) == "-srv-cafe-"
    assert project_key(composed) == "-srv-caf-"
    assert matches(decomposed, "-srv-cafe-")
    assert matches(decomposed, "-srv-caf-")  # normalized, as by 2.1.105
    assert not matches(composed, "-srv-cafe-")


def test_a_long_key_that_is_not_shortened_matches() -> None:
    path = "/srv/" + "segment/" * 30
    name = builder_key(path, is_shortened=False)
    assert 200 < len(name) < 255
    assert matches(path, name)
    assert not matches(path + "x", name)
