"""The library: everything a face can do is a method here."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from backscroll import sources
from backscroll.config import Machine, NamedRoot, this_machine
from backscroll.ingest.survey import Progress, Survey, survey
from backscroll.readers.outline import Outline
from backscroll.sources import Source

if TYPE_CHECKING:
    from backscroll.testing.demo import Demo

__all__ = ["History"]


class History:
    """A person's history, wherever the tools have left it.

    With ``roots`` only these folders are read; otherwise every place where a tool keeps its history.
    """

    def __init__(self, *, roots: Sequence[NamedRoot] = (), machine: Machine | None = None) -> None:
        self._machine = machine or this_machine()
        self._named = tuple(roots)
        for root in self._named:
            sources.named(root.source)

    def roots(self) -> Iterator[tuple[Source, Path]]:
        """Every folder that is looked at, whether or not it exists."""
        wanted = {root.source for root in self._named} or set(sources.NAMES)
        for name in filter(wanted.__contains__, sources.NAMES):
            source = sources.named(name)
            named = [root.path for root in self._named if root.source == name]
            for path in named or source.roots(self._machine):
                yield source, path

    def survey(self, progress: Progress | None = None) -> Survey:
        """What there is, and whether all of it was understood."""
        return survey(self.roots(), progress)

    def outlines(self) -> dict[str, dict[str, Outline]]:
        """Keys and types of every kind of record, by source, with no value in them."""
        found: dict[str, dict[str, Outline]] = {}
        for source, root in self.roots():
            kinds = found.setdefault(source.name, {})
            for unit in source.units(root) if root.is_dir() else ():
                for kind, document in source.documents(unit):
                    kinds.setdefault(kind, Outline()).add(document)
            source.close()
        return found

    def write_demo(self, folder: Path) -> "Demo":
        """Write a made-up history into a folder that does not exist yet, or is empty.

        Raises `DestinationError` when it cannot be written; then nothing is left behind.
        """
        from backscroll.testing import demo  # a long story, which nobody else should have to load

        return demo.write(folder)
