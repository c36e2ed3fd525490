"""Ids of git objects, computed without git.

A session that commits contains the output of git with the commit id. So the id must be
known before the repository is written.
"""

from collections.abc import Mapping
from hashlib import sha1


def commit_id(tree: str, parent: str | None, author: str, message: str) -> str:
    """Return the id of a commit. ``author`` is name, address, seconds and zone in the format of git."""
    parent_line = f"parent {parent}\n" if parent else ""
    return _object_id(
        "commit", f"tree {tree}\n{parent_line}author {author}\ncommitter {author}\n\n{message}".encode()
    )


def tree_id(files: Mapping[str, str]) -> str:
    """Return the id of a tree with these files by path."""
    entries: list[tuple[str, str, str]] = []  # sorting key, mode and name, id
    folders: dict[str, dict[str, str]] = {}
    for path, text in files.items():
        name, slash, rest = path.partition("/")
        if slash:
            folders.setdefault(name, {})[rest] = text
        else:
            entries.append((name, f"100644 {name}", _object_id("blob", text.encode())))
    # Git sorts a folder as if its name ended in a slash.
    entries += [(f"{name}/", f"40000 {name}", tree_id(content)) for name, content in folders.items()]
    entries.sort(key=lambda entry: entry[0].encode())
    return _object_id(
        "tree",
        b"".join(f"{mode_and_name}\0".encode() + bytes.fromhex(id) for _, mode_and_name, id in entries),
    )


def _object_id(kind: str, content: bytes) -> str:
    return sha1(f"{kind} {len(content)}\0".encode() + content, usedforsecurity=False).hexdigest()
