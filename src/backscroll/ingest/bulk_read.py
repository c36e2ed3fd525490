"""Read large amounts of new units in parallel, merge the shards, and index them in rounds."""

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from sqlite3 import IntegrityError

from backscroll.archive import Archive
from backscroll.archive.session_key import SessionKey
from backscroll.index import Index, IndexDamagedError
from backscroll.ingest import parallel
from backscroll.ingest.index_documents import SpooledDocuments
from backscroll.ingest.indexer import Indexer
from backscroll.ingest.malloc import malloc_trim
from backscroll.ingest.parallel import Batch, Shard
from backscroll.readers.temp_folder import TempFolder

__all__ = ["bulk_read"]

MAX_MERGED_SHARDS = 8  # in one transaction
MIN_ROUND_BYTES = 24 * 1024 * 1024  # of spooled documents that are indexed together
MIN_LAST_ROUND_BYTES = 8 * 1024 * 1024  # the same near the end
ROUND_FRACTION = 16  # a round is at least 1/16 of all documents: deriving costs more the larger the archive
EARLY_BYTES = 48 * 1024 * 1024  # of documents that are committed at once, so that the newest can be found


def bulk_read(
    archive: Archive, batches: list[Batch], updated: set[SessionKey], index: Callable[[], Index] | None
) -> Iterator[tuple[int, list[Batch]]]:
    """Read batches in several processes, and index the finished ones in rounds.

    Yields the estimated bytes that were read, and the batches that were merged into the archive.
    """
    spooled = SpooledDocuments()
    remaining = sum(batch.estimated_bytes for batch in batches)
    done = 0
    pending: list[Shard] = []  # read, not merged yet
    with (
        TempFolder() as folder,
        archive.units.bulk_merge(),
        nullcontext() if index is None else Indexer(archive, index()) as indexer,
    ):
        try:
            for shard in parallel.read_batches(batches, archive.units.exclusions, folder):
                done += shard.batch.estimated_bytes
                remaining -= shard.batch.estimated_bytes
                pending.append(shard)
                yield shard.batch.estimated_bytes, []
                size = sum(one.documents.stat().st_size for one in pending)
                is_round = spooled.size + size > _round_bytes(
                    spooled.total_size + size, remaining / max(1, done)
                )
                if not is_round and remaining and len(pending) < MAX_MERGED_SHARDS:
                    continue
                shards, pending = pending, []
                merged = _merge(archive, shards, spooled)
                if indexer is not None and is_round:
                    updated.update(archive.derive())
                    try:
                        indexer.catch_up(spooled)
                        if not remaining or spooled.total_size < EARLY_BYTES:
                            indexer.commit()
                    except (OSError, IndexDamagedError):
                        indexer = None  # reading goes on; the update after the sync raises the error
                    spooled = SpooledDocuments(spooled.total_size)
                    malloc_trim()
                yield 0, merged
        finally:
            # Interrupted, or a worker died. The shards read so far are complete.
            rest = _merge(archive, pending, spooled) if pending else []
        yield 0, rest


def _merge(archive: Archive, shards: list[Shard], spooled: SpooledDocuments) -> list[Batch]:
    """Merge shards into the archive. Return the merged batches."""
    try:
        offsets = archive.units.merge_shards([shard.archive for shard in shards])
        malloc_trim()  # frees the page cache of the merge
    except IntegrityError:
        # Another process has read one of the units. Merge the shards one by one; the caller reads the rest.
        if len(shards) > 1:
            return [batch for shard in shards for batch in _merge(archive, [shard], spooled)]
        shards[0].archive.unlink()
        return []
    for shard, offset in zip(shards, offsets, strict=True):
        spooled.add(shard.documents, shard.frames, offset)
        shard.archive.unlink()
    return [shard.batch for shard in shards]


def _round_bytes(total: int, remaining: float) -> int:
    """Return the size of the next round, given the bytes so far and the ratio of remaining to read bytes.

    Early rounds are as large as all before: the newest sessions can be listed and found at once. Rounds get
    smaller near the end, so that little remains to be indexed after the last batch.
    """
    limit = max(MIN_LAST_ROUND_BYTES, int(total * remaining / 2)) if remaining else 0
    return min(max(MIN_ROUND_BYTES, total // ROUND_FRACTION), limit, (total - 1) // 2)
