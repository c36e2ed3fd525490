"""Refuse stores of unknown versions: writing to them could make sessions unreadable."""

from msgspec import Struct

from backscroll.errors import UnknownStoreVersionError
from backscroll.sources.cursor.database.decode import UndecodableError, as_int, decode
from backscroll.sources.cursor.user_data import UserData
from backscroll.sources.cursor.writing.store_edits import StoreEdits

__all__ = ["check_composer", "check_store"]

MAX_COMPOSER_VERSION = 18
_KNOWN_HEADER_COLUMNS = frozenset(
    {
        "composerId",
        "workspaceId",
        "createdAt",
        "lastUpdatedAt",
        "isArchived",
        "isSubagent",
        "recency",
        "checkpointAt",
        "subagentTypeName",
        "value",
    }
)
_KNOWN_USER_VERSIONS = (0, 1)


class _Version(Struct, rename={"version": "_v"}):
    version: object = None


def check_store(user_data: UserData, edits: StoreEdits) -> None:
    """Raise `UnknownStoreVersionError` if the global database has an unknown layout."""
    path = user_data.global_path
    version = user_data.database(path).read(lambda db: db.execute("pragma user_version").fetchone()[0])
    if version not in _KNOWN_USER_VERSIONS:
        raise UnknownStoreVersionError(
            f"{path} has the unknown version {version}. Nothing was changed."
            " Update Backscroll and try again.",
            path,
        )
    columns = edits.header_columns()
    unknown = sorted(set(columns) - _KNOWN_HEADER_COLUMNS)
    if unknown or (columns and not {"composerId", "value"} <= set(columns)):
        names = ", ".join(unknown) or ", ".join(columns)
        raise UnknownStoreVersionError(
            f"The session table of {path} has unknown columns: {names}. Nothing was changed."
            " Update Backscroll and try again.",
            path,
        )


def check_composer(user_data: UserData, value: bytes) -> None:
    """Raise `UnknownStoreVersionError` if a session's record is newer than this program knows."""
    path = user_data.global_path
    try:
        version = as_int(decode(value, _Version).version)
    except UndecodableError as error:
        raise UnknownStoreVersionError(
            f"The session's record in {path} {error}. Nothing was changed.", path
        ) from error
    if version is not None and version > MAX_COMPOSER_VERSION:
        raise UnknownStoreVersionError(
            f"The session's record in {path} has the unknown version {version}. Nothing was changed."
            " Update Backscroll and try again.",
            path,
        )
