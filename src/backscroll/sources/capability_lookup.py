"""Find the module that implements a capability of a source.

A source names the modules in ``capability_modules``, by the name of the protocol in `capabilities`. A module
is loaded on first use: most are slow to import, and few commands need them. The same holds for the protocols.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import Mapping

    from backscroll.sources.protocols import Source

__all__ = ["capability", "has_capability", "required_capability"]

Capability = TypeVar("Capability")


def has_capability(source: Source, kind: type[object]) -> bool:
    """Return whether a source has a capability. Loads nothing."""
    return kind.__name__ in _modules(source)


def capability(source: Source, kind: type[Capability]) -> Capability | None:
    """Return the module that implements a capability of a source; None if the source does not have it."""
    name = _modules(source).get(kind.__name__)
    if name is None:
        return None
    return cast(Capability, import_module(f"{type(source).__module__}.{name}"))


def required_capability(source: Source, kind: type[Capability]) -> Capability:
    """Return the module that implements a capability which the source is known to have."""
    found = capability(source, kind)
    assert found is not None, f"{source.name} has no {kind.__name__}"
    return found


def _modules(source: Source) -> Mapping[str, str]:
    return getattr(source, "capability_modules", {})
