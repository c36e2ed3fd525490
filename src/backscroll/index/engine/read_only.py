"""Open an index in a folder that cannot be written."""

import os
import shutil
from pathlib import Path

import tantivy

from backscroll.index.engine.schema import open_index
from backscroll.readers.temp_folder import TempFolder

__all__ = ["is_writable", "open_read_only"]

_LOCK_SUFFIX = ".lock"


def is_writable(folder: Path) -> bool:
    """Return whether the user may create files in a folder."""
    return os.access(folder, os.W_OK)


def open_read_only(folder: Path) -> tuple[tantivy.Index, TempFolder]:
    """Open the index in a folder without writing to it. The caller closes the temporary folder.

    Tantivy creates a lock file even to read. The temporary folder contains links to all other files.
    Later changes of the index are not seen.
    """
    links = TempFolder()
    try:
        for file in folder.iterdir():
            if file.suffix != _LOCK_SUFFIX:
                _link(file.resolve(), links.path / file.name)
        return open_index(str(links.path)), links
    except BaseException:
        links.close()
        raise


def _link(file: Path, link: Path) -> None:
    try:
        link.symlink_to(file)
    except OSError:  # Windows without permission to create links
        shutil.copyfile(file, link)
