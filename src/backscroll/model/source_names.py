"""Names of the sources: ref prefix, config key and value of ``--source``."""

__all__ = ["SOURCE_NAMES"]

SOURCE_NAMES = ("claude-code", "cursor", "cursor-cli")
