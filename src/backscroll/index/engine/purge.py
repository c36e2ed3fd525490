"""Words of forgotten messages taken out of the index's files, without asking for those of all others again.

The engine keeps what it was told to forget until it happens to merge the files that hold it, and cannot be
told to merge them. It does merge files that hold few messages, once there are eight of them. So a copy of the
index says of every file in which something was forgotten that hardly anything is left in it, which the engine
believes until it reads the file, and gets eight tiny ones besides. Whether that did it is looked at then.
"""

import os
import shutil
from pathlib import Path
from typing import Any

import msgspec
import tantivy

from backscroll.index.engine.schema import METADATA_TAG, open_index
from backscroll.index.engine.writer import Writer

__all__ = ["copy_without_deleted"]

_META = "meta.json"
_MANAGED = ".managed.json"  # the files that the engine may delete once nobody needs them
_ENOUGH = 8
_HEAP = 15_000_000


def copy_without_deleted(folder: Path, copy: Path, watermark: str | None) -> bool:
    """Make an index in a new folder that finds what the one in the other folder finds, and holds no more.

    The other must not be written meanwhile. False when the engine did something else.
    """
    copy.mkdir(mode=0o700)
    meta = _decoded(folder / _META)
    with_forgotten = [each for each in meta["segments"] if each["deletes"] is not None]
    for segment in meta["segments"]:
        for file in folder.glob(f"{_stem(segment)}.*"):
            _link(file, copy / file.name)
    if (folder / _MANAGED).exists():
        shutil.copyfile(folder / _MANAGED, copy / _MANAGED)
    for segment in with_forgotten:
        segment["deletes"]["num_deleted_docs"] = segment["max_doc"] - 1
    (copy / _META).write_bytes(msgspec.json.encode(meta))
    _merge(copy)
    writer = Writer(open_index(str(copy)), is_small=True)
    writer.commit(watermark)
    writer.close()
    left = {_stem(segment) for segment in _decoded(copy / _META)["segments"]}
    if left & {_stem(segment) for segment in with_forgotten}:
        return False
    for file in copy.iterdir():  # nobody else knows of the copy yet, and whatever the engine left can go
        if file.suffix and not file.name.startswith((".", *left)) and file.name != _META:
            file.unlink()
    return True


def _merge(copy: Path) -> None:
    """Have the engine merge all that it takes for small."""
    writer = open_index(str(copy)).writer(_HEAP, 1)
    for _ in range(_ENOUGH):
        tiny = tantivy.Document()
        tiny.add_text("tags", METADATA_TAG)  # which the next commit of a note deletes
        writer.add_document(tiny)
        writer.commit()
    writer.wait_merging_threads()


def _link(file: Path, target: Path) -> None:
    """The same file under another name; a copy where the file system knows no such thing."""
    try:
        os.link(file, target)
    except OSError:
        shutil.copyfile(file, target)


def _stem(segment: dict[str, Any]) -> str:
    """How the names of a segment's files begin."""
    return str(segment["segment_id"]).replace("-", "")


def _decoded(path: Path) -> Any:
    return msgspec.json.decode(path.read_bytes())
