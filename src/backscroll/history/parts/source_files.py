"""Audit of the tools' files."""

from collections.abc import Callable

from backscroll.history.stores import Stores
from backscroll.ingest.audit import audit
from backscroll.model.problem import Audit, Problem
from backscroll.readers.file_access import is_entry_denied
from backscroll.readers.json_outline import Outline
from backscroll.sources.irregular_files import find_irregular_files
from backscroll.sources.protocols import RawRecords, close

__all__ = ["SourceFiles"]


class SourceFiles:
    """Audit of the tools' files."""

    def __init__(self, stores: Stores) -> None:
        self._stores = stores

    def audit(self, progress: Callable[[int, int], None] | None = None) -> Audit:
        """Parse every record of every root and return the counts and problems."""
        return audit(self._stores.roots(), progress)

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
