"""SHA-256 of files."""

from hashlib import file_digest
from pathlib import Path

__all__ = ["file_sha256"]


def file_sha256(path: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal, with bounded memory. Raises `OSError`."""
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()
