"""Layout of a backup file.

A backup is a ZIP file. Every entry is a stored ``.zst`` file, except ``manifest.json`` at the end. The
comment of the ZIP file has the SHA-256 of the manifest, and the SHA-256 of all bytes of the file before it.
"""

import re
from pathlib import PureWindowsPath

__all__ = [
    "COMMENT_BYTES",
    "FORMAT_VERSION",
    "MANIFEST",
    "MAX_MANIFEST_BYTES",
    "MAX_RATIO",
    "SEAL_BYTES",
    "entry_name",
    "is_safe_path",
    "make_comment",
    "parse_comment",
]

FORMAT_VERSION = "1.0"
MANIFEST = "manifest.json"
MAX_MANIFEST_BYTES = 1024**3
MAX_RATIO = 1000  # uncompressed to compressed bytes of one entry; the writer pads entries that exceed it
SEAL_BYTES = 64  # hexadecimal SHA-256 at the end of the file

_COMMENT = "backscroll backup {version}\nmanifest sha256 {manifest}\nfile sha256 {seal}"
_PARSED = re.compile(
    rb"backscroll backup ([0-9.]{3,8})\nmanifest sha256 ([0-9a-f]{64})\nfile sha256 ([0-9a-f]{64})"
)
COMMENT_BYTES = len(_COMMENT.format(version=FORMAT_VERSION, manifest="0" * 64, seal="0" * 64))


def make_comment(manifest_sha256: str, seal: str = "0" * SEAL_BYTES) -> bytes:
    """Return the comment of the ZIP file."""
    return _COMMENT.format(version=FORMAT_VERSION, manifest=manifest_sha256, seal=seal).encode()


def parse_comment(comment: bytes) -> tuple[str, str, str] | None:
    """Return format version, SHA-256 of the manifest and SHA-256 of the file; None if it has another form."""
    found = _PARSED.fullmatch(comment)
    return (found[1].decode(), found[2].decode(), found[3].decode()) if found else None


def entry_name(root: str, path: str) -> str:
    """Return the entry of a file."""
    return f"{root}/{path}.zst"


def is_safe_path(path: str) -> bool:
    """Return whether a relative path stays below its folder on every operating system."""
    if not path or "\0" in path or PureWindowsPath(path).drive or path.startswith(("/", "\\")):
        return False
    return not {"", ".", ".."} & set(path.replace("\\", "/").split("/"))
