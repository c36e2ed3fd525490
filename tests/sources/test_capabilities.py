"""Every capability of a source is a module or object with the functions of a protocol.

mypy checks the functions and their types. These tests check what it does not see.
"""

import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol, get_args, get_type_hints

import pytest

from backscroll.config import Machine
from backscroll.model.store import Unit
from backscroll.model.stream import Checkpoint, Item
from backscroll.sources import SOURCES, capabilities, protocols
from backscroll.sources.protocols import Source
from tests.sources.toy_source import Toy

OTHERS = {"roots", "units", "read", "file_ends", "keeps_file", "mcp_clients"}


class Bare(Source):
    """Source with the members that have no default."""

    name = platform = "bare"
    stores = ()

    def roots(self, machine: Machine) -> list[Path]:
        return []

    def units(self, root: Path) -> Iterator[Unit]:
        return iter(())

    def read(self, unit: Unit, since: Checkpoint | None = None) -> Iterator[Item]:
        return iter(())


def _capabilities() -> dict[str, type]:
    """Return the protocols of the capability methods, by the name of the method."""
    names = {name for name, _ in inspect.getmembers(Source, inspect.isfunction)} - OTHERS
    scope = {**vars(protocols), **vars(capabilities)}
    return {name: get_args(get_type_hints(getattr(Source, name), scope)["return"])[0] for name in names}


def _parameters(function: Callable[..., Any]) -> list[tuple[str, Any, Any]]:
    found = inspect.signature(function).parameters.values()
    return [(one.name, one.kind, one.default) for one in found if one.name != "self"]


@pytest.mark.parametrize("method", sorted(_capabilities()))
@pytest.mark.parametrize("source", [*SOURCES.values(), Toy])
def test_a_capability_has_the_functions_of_its_protocol(source: type[Source], method: str) -> None:
    found = getattr(source(), method)()
    if found is None:
        return
    for function_name, function in vars(_capabilities()[method]).items():
        if inspect.isfunction(function) and not function_name.startswith("_"):
            assert _parameters(getattr(found, function_name)) == _parameters(function), function_name


def test_every_protocol_is_a_capability_or_returned_by_one() -> None:
    found = vars(capabilities).values()
    declared = {kind for kind in found if getattr(kind, "_is_protocol", False) and kind is not Protocol}
    functions = (one for kind in declared for one in vars(kind).values() if inspect.isfunction(one))
    returned = {function.__annotations__.get("return") for function in functions}
    assert set(_capabilities().values()) == {kind for kind in declared if kind.__name__ not in returned}


@pytest.mark.parametrize("method", sorted(_capabilities()))
def test_every_capability_has_an_implementation(method: str) -> None:
    assert any(getattr(source(), method)() is not None for source in SOURCES.values())


@pytest.mark.parametrize("method", sorted(_capabilities()))
def test_a_source_without_capabilities_has_none(method: str) -> None:
    assert getattr(Bare(), method)() is None
