"""The names git gives to what it keeps, reckoned without git.

A session that commits prints the name of its commit, so the name must be known
while the story is still being told.
"""

from collections.abc import Mapping
from hashlib import sha1

__all__ = ["commit_id", "tree_id"]


def commit_id(tree: str, parent: str | None, author: str, message: str) -> str:
    """The name of a commit; ``author`` is name, address, seconds and zone as git writes them."""
    above = f"parent {parent}\n" if parent else ""
    return _id("commit", f"tree {tree}\n{above}author {author}\ncommitter {author}\n\n{message}".encode())


def tree_id(files: Mapping[str, str]) -> str:
    """The name of a folder with these plain files in it, by their paths."""
    entries: list[tuple[str, str, str]] = []  # sorting key, mode and name, id
    folders: dict[str, dict[str, str]] = {}
    for path, text in files.items():
        name, slash, rest = path.partition("/")
        if slash:
            folders.setdefault(name, {})[rest] = text
        else:
            entries.append((name, f"100644 {name}", _id("blob", text.encode())))
    # Git sorts a folder as if its name ended in a slash.
    entries += [(f"{name}/", f"40000 {name}", tree_id(inside)) for name, inside in folders.items()]
    entries.sort(key=lambda entry: entry[0].encode())
    return _id("tree", b"".join(f"{named}\0".encode() + bytes.fromhex(id) for _, named, id in entries))


def _id(kind: str, content: bytes) -> str:
    return sha1(f"{kind} {len(content)}\0".encode() + content, usedforsecurity=False).hexdigest()
