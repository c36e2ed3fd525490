"""What a call did to files, as far as its arguments say it."""

from typing import Any, Literal

from msgspec.structs import replace

from backscroll.model import Edit, Hunk

__all__ = ["as_created", "parse_edits"]

_WRITES = {"write", "writefile", "createfile"}
_REPLACES = {
    "strreplace",
    "edit",
    "searchreplace",
    "multiedit",
    "editfile",
    "editnotebook",
    "multistrreplace",
}
_PATCHES = {"applypatch", "patch"}
_DELETES = {"delete", "deletefile"}

_PATHS = (
    "path",
    "file_path",
    "filePath",
    "target_file",
    "targetFile",
    "target_notebook",
    "relativeWorkspacePath",
)
_OLD = ("old_string", "oldString", "old_str", "old_text")
_NEW = ("new_string", "newString", "new_str", "new_text")
_CONTENTS = ("contents", "content", "file_text", "fileText")
_PATCH_TEXT = ("patch", "input", "diff", "patch_text", "raw")

_Kind = Literal["create", "update", "delete"]
_SECTIONS: dict[str, _Kind] = {
    "*** Add File: ": "create",
    "*** Update File: ": "update",
    "*** Delete File: ": "delete",
}


def parse_edits(name: str, params: dict[str, Any]) -> tuple[Edit, ...]:
    """The edits that a call asked for; nothing for a tool that edits nothing or is not known."""
    tool = "".join(letter for letter in name.lower() if letter.isalnum())
    path = _text(params, _PATHS)
    if tool in _PATCHES:
        return tuple(_patched(_text(params, _PATCH_TEXT) or "", path))
    if path is None:
        return ()
    if tool in _DELETES:
        return (Edit(path, kind="delete"),)
    contents = _text(params, _CONTENTS)
    if tool in _WRITES and contents is not None:
        return (Edit(path, (Hunk(added=_lines(contents)),)),)
    if tool in _REPLACES:
        steps = params.get("edits")
        hunks = [_hunk(step) for step in (steps if isinstance(steps, list) else [params])]
        kept = tuple(hunk for hunk in hunks if hunk is not None)
        return (Edit(path, kept),) if kept else ()
    return ()


def as_created(edits: tuple[Edit, ...]) -> tuple[Edit, ...]:
    """The same edits of a file that was not there before; one that took lines out was."""
    return tuple(
        replace(edit, kind="create") if edit.kind == "update" and not edit.removed else edit for edit in edits
    )


def _hunk(step: Any) -> Hunk | None:
    if not isinstance(step, dict):
        return None
    old, new = _text(step, _OLD), _text(step, _NEW)
    if old is None and new is None:
        return None
    return Hunk(_lines(old or ""), _lines(new or ""))


def _text(params: dict[str, Any], keys: tuple[str, ...]) -> str | None:
    return next((value for key in keys if isinstance(value := params.get(key), str)), None)


def _lines(text: str) -> tuple[str, ...]:
    return tuple(text.removesuffix("\n").split("\n")) if text else ()


def _patched(patch: str, path: str | None) -> list[Edit]:
    """The edits of a patch, in the spelling of models (``*** Update File:``) or of diff."""
    files = [_PatchedFile(path)]
    lines = patch.split("\n")
    for number, line in enumerate(lines):
        following = lines[number + 1] if number + 1 < len(lines) else ""
        section = next((head for head in _SECTIONS if line.startswith(head)), None)
        if section is not None:
            files.append(_PatchedFile(line.removeprefix(section).strip(), _SECTIONS[section]))
        elif line.startswith("--- ") and following.startswith("+++ "):
            old, new = _diff_name(line), _diff_name(following)
            files.append(
                _PatchedFile(new or old, "delete" if new is None else "create" if old is None else "update")
            )
        elif not line.startswith("+++ ") or not lines[number - 1].startswith("--- "):
            files[-1].take(line)
    return [edit for file in files if (edit := file.edit()) is not None]


def _diff_name(line: str) -> str | None:
    name = line[4:].split("\t")[0].strip()
    return None if name == "/dev/null" else name.removeprefix("a/").removeprefix("b/")


class _PatchedFile:
    """One file of a patch while its lines come in."""

    def __init__(self, path: str | None, kind: _Kind = "update") -> None:
        self._path = path
        self._kind = kind
        self._hunks: list[Hunk] = []
        self._removed: list[str] = []
        self._added: list[str] = []

    def take(self, line: str) -> None:
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
