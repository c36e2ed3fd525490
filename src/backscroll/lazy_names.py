"""Names of a package that are loaded on first use, for a fast start-up."""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

__all__ = ["lazy_names"]


def lazy_names(package: str, modules: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a package.

    ``modules`` maps a module to the names in it, separated by spaces. A module that starts with a dot is in
    the package.
    """

    def load(name: str) -> Any:
        for module, names in modules.items():
            if name in names.split():
                value = getattr(import_module(module, package), name)
                setattr(sys.modules[package], name, value)  # the next use finds it there
                return value
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return load
