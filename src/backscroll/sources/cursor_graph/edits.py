"""Derive file edits from the arguments of a tool call."""

from typing import Any, Literal

from msgspec.structs import replace

from backscroll.model import Edit, Hunk

__all__ = ["as_created", "parse_edits"]

_WRITE_TOOLS = {"write", "writefile", "createfile"}
_REPLACE_TOOLS = {
    "strreplace",
    "edit",
    "searchreplace",
    "multiedit",
    "editfile",
    "editnotebook",
    "multistrreplace",
}
_PATCH_TOOLS = {"applypatch", "patch"}
_DELETE_TOOLS = {"delete", "deletefile"}

_PATH_KEYS = (
    "path",
    "file_path",
    "filePath",
    "target_file",
    "targetFile",
    "target_notebook",
    "relativeWorkspacePath",
)
_OLD_TEXT_KEYS = ("old_string", "oldString", "old_str", "old_text")
_NEW_TEXT_KEYS = ("new_string", "newString", "new_str", "new_text")
_CONTENT_KEYS = ("contents", "content", "file_text", "fileText")
_PATCH_KEYS = ("patch", "input", "diff", "patch_text", "raw")

_Kind = Literal["create", "update", "delete"]
_SECTION_HEADERS: dict[str, _Kind] = {
    "*** Add File: ": "create",
    "*** Update File: ": "update",
    "*** Delete File: ": "delete",
}


def parse_edits(name: str, params: dict[str, Any]) -> tuple[Edit, ...]:
    """Return the edits that a call requests; none if the tool is unknown or does not edit files."""
    tool = "".join(char for char in name.lower() if char.isalnum())
    path = _first_text(params, _PATH_KEYS)
    if tool in _PATCH_TOOLS:
        return tuple(_parse_patch(_first_text(params, _PATCH_KEYS) or "", path))
    if path is None:
        return ()
    if tool in _DELETE_TOOLS:
        return (Edit(path, kind="delete"),)
    content = _first_text(params, _CONTENT_KEYS)
    if tool in _WRITE_TOOLS and content is not None:
        return (Edit(path, (Hunk(added=_split_lines(content)),)),)
    if tool in _REPLACE_TOOLS:
        replacements = params.get("edits")
        found = [_parse_hunk(each) for each in (replacements if isinstance(replacements, list) else [params])]
        hunks = tuple(hunk for hunk in found if hunk is not None)
        return (Edit(path, hunks),) if hunks else ()
    return ()


def as_created(edits: tuple[Edit, ...]) -> tuple[Edit, ...]:
    """Mark edits as the creation of a file. An edit that removes lines is not marked: the file existed."""
    return tuple(
        replace(edit, kind="create") if edit.kind == "update" and not edit.removed else edit for edit in edits
    )


def _parse_hunk(replacement: Any) -> Hunk | None:
    if not isinstance(replacement, dict):
        return None
    old, new = _first_text(replacement, _OLD_TEXT_KEYS), _first_text(replacement, _NEW_TEXT_KEYS)
    if old is None and new is None:
        return None
    return Hunk(_split_lines(old or ""), _split_lines(new or ""))


def _first_text(params: dict[str, Any], keys: tuple[str, ...]) -> str | None:
    return next((value for key in keys if isinstance(value := params.get(key), str)), None)


def _split_lines(text: str) -> tuple[str, ...]:
    return tuple(text.removesuffix("\n").split("\n")) if text else ()


def _parse_patch(patch: str, path: str | None) -> list[Edit]:
    """Parse a patch in the format of models (``*** Update File:``) or of diff."""
    files = [_PatchedFile(path)]
    lines = patch.split("\n")
    for index, line in enumerate(lines):
        next_line = lines[index + 1] if index + 1 < len(lines) else ""
        header = next((header for header in _SECTION_HEADERS if line.startswith(header)), None)
        if header is not None:
            files.append(_PatchedFile(line.removeprefix(header).strip(), _SECTION_HEADERS[header]))
        elif line.startswith("--- ") and next_line.startswith("+++ "):
            old, new = _diff_path(line), _diff_path(next_line)
            files.append(
                _PatchedFile(new or old, "delete" if new is None else "create" if old is None else "update")
            )
        elif not line.startswith("+++ ") or not lines[index - 1].startswith("--- "):
            files[-1].add_line(line)
    return [edit for file in files if (edit := file.edit()) is not None]


def _diff_path(line: str) -> str | None:
    path = line[4:].split("\t")[0].strip()
    return None if path == "/dev/null" else path.removeprefix("a/").removeprefix("b/")


class _PatchedFile:
    """Collects the changed lines of one file in a patch."""

    def __init__(self, path: str | None, kind: _Kind = "update") -> None:
        self._path = path
        self._kind = kind
        self._hunks: list[Hunk] = []
        self._removed: list[str] = []
        self._added: list[str] = []

    def add_line(self, line: str) -> None:
        if line.startswith("+"):
            self._added.append(line[1:])
            return
        if line.startswith("-"):
            self._removed.append(line[1:])
            return
        self._end_hunk()

    def _end_hunk(self) -> None:
        if self._removed or self._added:
            self._hunks.append(Hunk(tuple(self._removed), tuple(self._added)))
            self._removed, self._added = [], []

    def edit(self) -> Edit | None:
        self._end_hunk()
        if self._path is None or (not self._hunks and self._kind != "delete"):
            return None
        return Edit(self._path, tuple(self._hunks), self._kind)
