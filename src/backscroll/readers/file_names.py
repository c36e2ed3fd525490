"""Names of files as text: few systems see to it that they are."""

__all__ = ["escape_name", "is_utf8"]


def is_utf8(name: str) -> bool:
    """Whether a name can be written down; one whose bytes are no UTF-8 cannot."""
    return name.isascii() or name == escape_name(name)


def escape_name(name: str) -> str:
    """A name with what is no text in it spelt out: enough to find the file, not to open it."""
    return name if name.isascii() else name.encode("utf-8", "backslashreplace").decode()
