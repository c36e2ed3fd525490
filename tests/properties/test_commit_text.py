"""Lines, shell commands and notebooks of any content."""

import json

from hypothesis import given
from hypothesis import strategies as st

from backscroll.commits import shell
from backscroll.commits.lines import code_lines, hash_each, hash_lines

COMMAND_PARTS = st.sampled_from(
    [
        "git commit",
        " -m ",
        " -F ",
        "'",
        '"',
        "<<",
        "EOF",
        "\n",
        "$(cat ",
        ")",
        "'''",
        '"""',
        "> a.py",
        "+++ b",
        " -qam ",
    ]
)
commands = st.lists(st.one_of(COMMAND_PARTS, st.text(max_size=12)), max_size=20).map("".join)


@given(commands)
def test_every_command_can_be_read(command: str) -> None:
    assert all(isinstance(write.text, str) for write in shell.written_texts(command))
    assert all(isinstance(path, str) for path in shell.changed_paths(command))
    parsed = shell.parse_commit(command)
    if parsed is not None:
        assert all(subject and "\n" not in subject for subject in parsed.subjects)
    found = (*shell.created_hashes(command), *shell.shown_hashes(command))
    assert all(len(printed) >= 7 for printed in found)


@given(st.lists(st.binary(max_size=30).map(lambda line: line.replace(b"\n", b"")), max_size=20))
def test_each_line_has_the_hash_that_it_has_alone(lines: list[bytes]) -> None:
    hashes = hash_each(lines)
    assert [[hashed] if hashed else [] for hashed in hashes] == [[*hash_lines([line])] for line in lines]
    assert set(hash_lines(lines)) == {hashed for hashed in hashes if hashed}


@given(st.lists(st.text(max_size=30).map(lambda line: line.replace("\n", "").replace("\r", "")), max_size=10))
def test_the_lines_of_a_notebook_are_those_of_its_cells(lines: list[str]) -> None:
    document = json.dumps({"cells": [{"source": [f"{line}\n" for line in lines]}]}, indent=1).encode()
    found = code_lines("x.ipynb", document.split(b"\n"))
    assert all(line.encode("utf-8", "replace") in found for line in lines)
    assert code_lines("x.py", [b'"a\\n",']) == [b'"a\\n",']


@given(st.lists(st.binary(max_size=30), max_size=10))
def test_every_line_of_a_notebook_can_be_read(lines: list[bytes]) -> None:
    assert len(code_lines("x.ipynb", lines)) == len(lines)
