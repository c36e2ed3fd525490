"""Audit of the tools' files, and its stored counts."""

from collections.abc import Callable

from backscroll.history.stores import Stores
from backscroll.ingest.audit import audit
from backscroll.model.problem import Audit, Problem, SourceCounts
from backscroll.readers.file_access import is_entry_denied
from backscroll.readers.json_outline import Outline
from backscroll.sources.irregular_files import find_irregular_files
from backscroll.sources.protocols import RawRecords, close

__all__ = ["SourceFiles"]


class SourceFiles:
    """Audit of the tools' files, and its stored counts."""

    def __init__(self, stores: Stores) -> None:
        self._stores = stores

    def audit(self, progress: Callable[[int, int], None] | None = None) -> Audit:
        """Parse every record of every root and return the counts and problems."""
        return audit(self._stores.roots(), progress)

    def counts(self) -> list[SourceCounts]:
        """Return the counts of every root as of the last sync, existing or not. Reads no file of a tool.

        They equal those of `audit` if nothing has changed since.
        """
        stored = self._stores.archive.maintenance.source_counts()
        found: list[SourceCounts] = []
        for source, root in self._stores.roots():
            counts = stored.pop((source.name, str(root)), None)
            counts = counts or SourceCounts(source=source.name, path=str(root))
            counts.exists = is_entry_denied(root) or root.is_dir()
            found.append(counts)
        return found + list(stored.values())  # roots that are no longer read

    def problems(self, limit: int) -> tuple[int, list[Problem]]:
        """Return the number of problems as of the last sync, and the first ones."""
        return self._stores.archive.maintenance.current_problems(limit)

    def irregular_files(self) -> list[Problem]:
        """Return the folders, pipes and broken links that have the name of a session file."""
        found: list[Problem] = []
        for source, root in self._stores.roots():
            if not is_entry_denied(root):
                found += find_irregular_files(source, root)
        return found

    def outlines(self) -> dict[str, dict[str, Outline]]:
        """Return keys and types of every record type, by source, without any value."""
        found: dict[str, dict[str, Outline]] = {}
        for source, root in self._stores.roots():
            kinds = found.setdefault(source.name, {})
            if not isinstance(source, RawRecords) or is_entry_denied(root) or not root.is_dir():
                continue
            for unit in source.units(root):
                for kind, document in source.raw_records(unit):
                    kinds.setdefault(kind, Outline()).add(document)
            close(source)
        return found
