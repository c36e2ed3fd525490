"""What is still to be done after something was forgotten, should the process have been stopped on the way.

The rows go in one transaction. The words in the index and the bytes in free space go after it, and until
they have gone a file beside the archive says so. It is there before the transaction begins.
"""

from pathlib import Path

__all__ = ["owe_erasure", "owes_erasure", "owes_index", "settle_erasure", "settle_index"]


def _note(archive: Path) -> Path:
    return archive.with_name(f"{archive.name}-erase")


def owe_erasure(archive: Path) -> None:
    """Note that index and free space are to be cleaned."""
    _note(archive).write_text("index\n", encoding="ascii")


def owes_erasure(archive: Path) -> bool:
    return _note(archive).exists()


def owes_index(archive: Path) -> bool:
    """Whether the index may still hold words of what was forgotten."""
    return owes_erasure(archive) and "index" in _note(archive).read_text(encoding="ascii", errors="replace")


def settle_index(archive: Path) -> None:
    """The index has none of it any more; the free space may."""
    if owes_erasure(archive):
        _note(archive).write_text("free space\n", encoding="ascii")


def settle_erasure(archive: Path) -> None:
    """Nothing of it is left."""
    _note(archive).unlink(missing_ok=True)
