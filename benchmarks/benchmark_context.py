"""Generated history and archive that the benchmarks of one run share."""

import shutil
import sys
from functools import cached_property
from pathlib import Path

from backscroll.config import NamedRoot
from backscroll.history.history import History
from benchmarks.generated_histories import CACHE_FOLDER, claude_code_history, fill_page_cache
from benchmarks.measurement import ProcessRun, run_process

_MAIN_CODE = "import sys; from backscroll.cli import main; sys.argv[0] = 'backscroll'; main()"


class BenchmarkContext:
    """One run at one scale. The archive is created again unless ``keep`` reuses that of the last run."""

    def __init__(self, scale: str, *, keep: bool = False) -> None:
        self.scale = scale
        self.home = CACHE_FOLDER / f"home-{scale}"
        self._keep = keep

    @cached_property
    def root(self) -> Path:
        """Claude Code folder, loaded into the page cache."""
        root = claude_code_history(self.scale)
        fill_page_cache(root)
        return root

    @cached_property
    def first_sync(self) -> ProcessRun:
        """Measurements of the sync that creates the archive."""
        shutil.rmtree(self.home, ignore_errors=True)
        return self.run_command("sync", sample_memory=True, accepted_exit_codes=(0, 3))

    def ensure_archive(self) -> None:
        """Create the archive unless an existing one is reused."""
        if not (self._keep and (self.home / "archive.db").exists()):
            assert self.first_sync

    def open_history(self, *more_roots: NamedRoot) -> History:
        """Open the archive of this run."""
        self.ensure_archive()
        return History(roots=[NamedRoot("claude-code", self.root), *more_roots], home=self.home)

    def run_command(
        self, *arguments: str, sample_memory: bool = False, accepted_exit_codes: tuple[int, ...] = (0,)
    ) -> ProcessRun:
        """Run ``backscroll`` on the archive of this run in a separate process."""
        options = ["--home", str(self.home), "--root", f"claude-code={self.root}"]
        return run_process(
            [*BACKSCROLL_COMMAND, *options, *arguments],
            sample_memory=sample_memory,
            accepted_exit_codes=accepted_exit_codes,
        )


def _backscroll_command() -> list[str]:
    """Return the installed command, whose start time is what users see, or its equivalent in Python."""
    installed = Path(sys.executable).with_name("backscroll")
    return [str(installed)] if installed.exists() else [sys.executable, "-c", _MAIN_CODE]


BACKSCROLL_COMMAND = _backscroll_command()
