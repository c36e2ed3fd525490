"""The demo: a made-up home folder with its own archive."""

import shutil
from pathlib import Path

from backscroll.config import NamedRoot
from backscroll.history.history import History
from backscroll.testing import demo
from backscroll.testing.demo import Demo

__all__ = ["Demo", "write_demo"]


def write_demo(folder: Path) -> Demo:
    """Write the demo, sync it into `folder/archive`, then delete one session as the tool would.

    If anything fails, nothing is left behind.
    """
    written = demo.write(folder)
    try:
        roots = [NamedRoot(source, Path(path)) for source, path in written.roots.items()]
        with History(home=Path(written.folder, "archive"), roots=roots) as history:
            history.sync()
        demo.delete_session(written)
    except BaseException:
        shutil.rmtree(written.folder, ignore_errors=True)
        raise
    return written
