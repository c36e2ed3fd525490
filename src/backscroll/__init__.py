"""Archive and search of your history with AI coding assistants.

``from backscroll import History`` loads the library. ``import backscroll`` loads only the version.
"""

TYPE_CHECKING = False  # importing `typing` would double the time of `backscroll --version`

if TYPE_CHECKING:
    from backscroll.history.history import History

__version__ = "0.1.0"

__all__ = ["History", "__version__"]


def __getattr__(name: str) -> object:
    if name != "History":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from backscroll.history.history import History  # start-up: `backscroll --version` needs the version only

    return History
