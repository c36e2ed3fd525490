"""Parse the addresses in Cursor's records: plain paths, file URIs and URIs of remote hosts."""

import re
from typing import Any, NamedTuple
from urllib.parse import unquote

import msgspec

from backscroll.sources.cursor.database.decode import as_map, as_text

_URI = re.compile(r"^([A-Za-z][A-Za-z0-9+.\-]+)://([^/?#]*)([^?#]*)")
_NON_FILE_SCHEMES = frozenset({"http", "https", "data", "mailto", "command", "vscode"})
_WSL_SHARE = re.compile(r"^[\\/]{2}(?:wsl\.localhost|wsl\$)[\\/]([^\\/]+)(.*)$", re.IGNORECASE | re.DOTALL)
_DRIVE = re.compile(r"^/?([A-Za-z]):(.*)$", re.DOTALL)
_HEX_AUTHORITY = re.compile(r"(?:[0-9a-fA-F]{2}){8,}")


class Address(NamedTuple):
    """Path on this machine, or on the remote host in ``authority``."""

    path: str
    authority: str = ""


def parse_uri(value: Any) -> Address | None:
    """Parse a URI, which is text or the editor's URI object. Return None if it is not a file."""
    if isinstance(value, str):
        return _parse_text(value)
    parts = as_map(value)
    scheme, authority = as_text(parts.get("scheme")), as_text(parts.get("authority"))
    path = as_text(parts.get("path"))
    if scheme in _NON_FILE_SCHEMES:
        return None
    if scheme and scheme != "file":
        if authority and path:
            return _remote_address(authority, path)
        return _parse_text(as_text(parts.get("external")))
    fs_path = as_text(parts.get("fsPath")) or as_text(parts.get("_fsPath"))
    if fs_path:
        return _local_address(fs_path)
    if authority and path:
        return _local_address(f"//{authority}{path}")
    if path:
        return _local_address(path)
    return _parse_text(as_text(parts.get("external")) or as_text(parts.get("_formatted")))


def file_path(value: Any) -> str:
    """Return the path of a URI without the host; empty if it is not a file."""
    found = parse_uri(value)
    return found.path if found else ""


def _parse_text(text: str) -> Address | None:
    found = _URI.match(text)
    if found is None:
        return _local_address(text) if text.startswith(("/", "\\\\")) or _DRIVE.match(text) else None
    scheme, authority, path = found[1].lower(), unquote(found[2]), unquote(found[3])
    if scheme == "file":
        return _local_address(f"//{authority}{path}" if authority else path)
    return _remote_address(authority, path) if authority and scheme not in _NON_FILE_SCHEMES else None


def _local_address(path: str) -> Address:
    """Return the address of a local path. A WSL share belongs to its distribution, as in a remote URI."""
    if share := _WSL_SHARE.match(path):
        return Address(share[2].replace("\\", "/") or "/", f"wsl+{share[1]}")
    if drive := _DRIVE.match(path):
        return Address(f"{drive[1].lower()}:{drive[2]}")
    return Address(path)


def _remote_address(authority: str, path: str) -> Address:
    kind, plus, host = unquote(authority).partition("+")
    if kind == "ssh-remote" and _HEX_AUTHORITY.fullmatch(host):
        host = _decode_host_name(host) or host
    return Address(path or "/", f"{kind}{plus}{host}")


def _decode_host_name(digits: str) -> str:
    """Return the host name from the hexadecimal JSON that newer remote extensions use as authority."""
    try:
        return as_text(as_map(msgspec.json.decode(bytes.fromhex(digits))).get("hostName"))
    except (msgspec.DecodeError, UnicodeDecodeError):
        return ""
