"""The demo and a synced archive of it, written once for all workers of a run."""

import shutil
import time
from pathlib import Path

import msgspec

from backscroll.config import NamedRoot
from backscroll.history.history import History
from backscroll.readers.file_lock import try_lock
from backscroll.testing import demo
from backscroll.testing.demo import Demo

_LOCK_RETRY_SECONDS = 0.05


class DemoArchive:
    """The demo, which no test may change, and its archive, of which each test gets a copy."""

    def __init__(self, folder: Path) -> None:
        """Write the demo, unless another worker has done so. All workers pass the same folder."""
        self._home = folder / "home"
        document = folder / "written.json"
        folder.mkdir(exist_ok=True)
        while (lock := try_lock(folder / "lock")) is None:
            time.sleep(_LOCK_RETRY_SECONDS)
        try:
            if not document.exists():
                written = demo.write(folder / "users" / "robin")
                with History(roots=_named_roots(written), home=self._home) as history:
                    history.sync()
                document.write_bytes(msgspec.json.encode(written))
        finally:
            lock.close()
        self.written = msgspec.json.decode(document.read_bytes(), type=Demo)

    def copy(self, home: Path) -> History:
        """Copy the archive into a folder. Return it, open."""
        shutil.copytree(self._home, home, dirs_exist_ok=True)
        return History(roots=_named_roots(self.written), home=home)


def _named_roots(written: Demo) -> list[NamedRoot]:
    return [NamedRoot(source, Path(root)) for source, root in written.roots.items()]
