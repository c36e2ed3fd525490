"""Removal of deleted messages from the index files without a rebuild.

Tantivy keeps deleted documents until it merges their segment, and tantivy-py has no
call that forces a merge. Tantivy merges small segments once there are eight of them.
So this module edits the metadata of a copy of the index: each segment with deletions
appears nearly empty. Eight commits of one tiny document then trigger the merge. The
result is verified.

The metadata is Tantivy's private format. `purge` supports the versions in
`SUPPORTED_ENGINES` only; for any other the caller rebuilds the index.
"""

import os
from pathlib import Path
from typing import Any

import msgspec
import tantivy

from backscroll.index.engine.schema import METADATA_TAG, open_index
from backscroll.index.engine.writer import SMALL_HEAP_BYTES, Writer

__all__ = ["SUPPORTED_ENGINES", "copy_without_deleted"]

SUPPORTED_ENGINES = ("tantivy v0.27.0, index_format v7",)  # values of tantivy.__version__
_META = "meta.json"
_MANAGED = ".managed.json"  # files that Tantivy may delete when no longer in use
_MIN_MERGE_SEGMENTS = 8


def copy_without_deleted(folder: Path, copy: Path, watermark: str | None) -> bool:
    """Create a copy of an index that does not contain its deleted messages.

    The index must not change meanwhile. Return False if this version of Tantivy is unknown or did not
    merge as expected.
    """
    if getattr(tantivy, "__version__", None) not in SUPPORTED_ENGINES:
        return False
    copy.mkdir(mode=0o700)
    meta = _decode(folder / _META)
    with_deletions = [segment for segment in meta["segments"] if segment["deletes"] is not None]
    for segment in meta["segments"]:
        for file in folder.glob(f"{_file_stem(segment)}.*"):
            _link(file, copy / file.name)
    if (folder / _MANAGED).exists():
        (copy / _MANAGED).write_bytes((folder / _MANAGED).read_bytes())
    for segment in with_deletions:
        segment["deletes"]["num_deleted_docs"] = segment["max_doc"] - 1
    (copy / _META).write_bytes(msgspec.json.encode(meta))
    _merge(copy)
    writer = Writer(open_index(str(copy)), is_small=True)
    writer.commit(watermark)
    writer.close()
    remaining = {_file_stem(segment) for segment in _decode(copy / _META)["segments"]}
    if remaining & {_file_stem(segment) for segment in with_deletions}:
        return False
    for file in copy.iterdir():  # no other process uses the copy yet, so unused files can go
        if file.suffix and not file.name.startswith((".", *remaining)) and file.name != _META:
            file.unlink()
    return True


def _merge(copy: Path) -> None:
    """Trigger a merge of all segments that appear small."""
    writer = open_index(str(copy)).writer(SMALL_HEAP_BYTES, 1)
    for _ in range(_MIN_MERGE_SEGMENTS):
        document = tantivy.Document()
        document.add_text("tags", METADATA_TAG)  # deleted by the next `Writer.commit`
        writer.add_document(document)
        writer.commit()
    writer.wait_merging_threads()


def _link(file: Path, target: Path) -> None:
    """Hard-link a file, or copy it if the file system has no hard links."""
    try:
        os.link(file, target)
    except OSError:
        import shutil  # start-up time: every search loads this module

        shutil.copyfile(file, target)


def _file_stem(segment: dict[str, Any]) -> str:
    """Return the common prefix of the file names of a segment."""
    return str(segment["segment_id"]).replace("-", "")


def _decode(path: Path) -> Any:
    return msgspec.json.decode(path.read_bytes())
