"""Compare paths of edits with paths in a repository, which may be another clone in another folder."""

from backscroll.git.repository import Repository


def normalize(path: str) -> str:
    """Return a path with slashes and without a leading ``./``."""
    if "\\" in path:
        path = path.replace("\\", "/")
    return path[2:] if path.startswith("./") else path


def base_name(path: str) -> str:
    """Return the last part of a path."""
    return path[path.rfind("/") + 1 :]


def implied_root(edited: str, tracked: str) -> str | None:
    """Return the root of the checkout if an edited path is a file that the repository tracks.

    It is empty for a relative path. None if the paths do not fit.
    """
    if edited == tracked:
        return ""
    if edited.endswith(tracked) and edited[-len(tracked) - 1] == "/":
        return edited[: -len(tracked) - 1]
    is_relative = not edited.startswith("/") and edited[1:2] != ":"
    if is_relative and tracked.endswith(edited) and tracked[-len(edited) - 1] == "/":
        return ""  # relative to a subfolder
    return None


def is_inside(path: str, folder: str) -> bool:
    """Return whether a path is a folder or in it."""
    return path == folder or (path.startswith(folder) and path[len(folder) : len(folder) + 1] == "/")


def repository_names(repository: Repository) -> set[str]:
    """Return the names of the repository: of its folders, and in the URLs of its remotes."""
    names = {path.name for path in (repository.folder, *repository.checkouts)}
    names |= {base_name(url.rstrip("/").replace(":", "/")) for url in repository.remotes}
    return {name.removesuffix(".git") for name in names} - {""}
