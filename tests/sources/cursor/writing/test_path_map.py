"""Paths are replaced at the boundary of a component, and only in URIs and tool parameters."""

import json

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from backscroll.model.workspace import PathMaps
from backscroll.sources.cursor.writing.folders import RecordPaths

PATHS = RecordPaths(PathMaps([("/a/app", "/b/new app")]))


def bubble(**fields: object) -> dict[str, object]:
    changed: dict[str, object] = json.loads(PATHS.bubble(json.dumps(fields).encode()))
    return changed


def test_a_path_is_mapped_at_the_boundary_of_a_component() -> None:
    assert PATHS.path("/a/app") == "/b/new app"
    assert PATHS.path("/a/app/x.py") == "/b/new app/x.py"
    assert PATHS.path("/a/app2/x.py") == "/a/app2/x.py"
    assert PATHS.path("/c/a/app/x.py") == "/c/a/app/x.py"


def test_a_file_uri_is_mapped_and_quoted() -> None:
    assert PATHS.path("file:///a/app/x%20y.py") == "file:///b/new%20app/x%20y.py"
    assert PATHS.path("file:///a/app2/x") == "file:///a/app2/x"


def test_tool_parameters_are_mapped_as_text_and_as_object() -> None:
    params = {"path": "/a/app/x.py", "command": "cat /a/app/x.py"}
    expected = {"path": "/b/new app/x.py", "command": "cat /a/app/x.py"}
    as_text = bubble(toolFormerData={"name": "read", "params": json.dumps(params), "rawArgs": "/a/app"})
    assert json.loads(as_text["toolFormerData"]["params"]) == expected  # type: ignore[index]
    assert as_text["toolFormerData"]["rawArgs"] == "/a/app"  # type: ignore[index]
    as_object = bubble(toolFormerData={"name": "read", "params": params})
    assert as_object["toolFormerData"]["params"] == expected  # type: ignore[index]


def test_uris_of_code_blocks_and_context_are_mapped_and_text_is_not() -> None:
    changed = bubble(
        text="see /a/app/x.py",
        codeBlocks=[{"uri": {"scheme": "file", "path": "/a/app/x.py"}, "content": "/a/app/x.py"}],
        context={"fileSelections": [{"uri": {"fsPath": "/a/app/x.py", "scheme": "file"}}], "note": "/a/app"},
    )
    assert changed == {
        "text": "see /a/app/x.py",
        "codeBlocks": [{"uri": {"scheme": "file", "path": "/b/new app/x.py"}, "content": "/a/app/x.py"}],
        "context": {
            "fileSelections": [{"uri": {"fsPath": "/b/new app/x.py", "scheme": "file"}}],
            "note": "/a/app",
        },
    }


def test_keys_of_file_states_are_mapped() -> None:
    fields = {"originalFileStates": Raw(b'{"file:///a/app/x":{"content":"/a/app"}}')}
    PATHS.composer(fields)
    assert json.loads(bytes(fields["originalFileStates"])) == {"file:///b/new%20app/x": {"content": "/a/app"}}


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_a_record_without_the_folder_is_returned_byte_for_byte(document: object) -> None:
    value = msgspec.json.encode({"toolFormerData": {"params": document}, "context": document, "x": document})
    if not PATHS.may_apply(value):
        assert PATHS.bubble(value) == value
