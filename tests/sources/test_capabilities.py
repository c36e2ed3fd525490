"""Every module that a source names for a capability has the functions of the protocol."""

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from backscroll.sources import capabilities, named, names
from backscroll.sources.capabilities import BackupContents
from backscroll.sources.capability_lookup import capability, has_capability, required_capability
from backscroll.sources.protocols import RetentionPolicy
from tests.sources.toy_source import Toy


def _implemented() -> Iterator[tuple[str, type[object]]]:
    for name in names():
        for kind in vars(named(name).__class__)["capability_modules"]:
            yield name, RetentionPolicy if kind == "RetentionPolicy" else getattr(capabilities, kind)


def _parameters(function: Callable[..., Any]) -> list[tuple[str, Any, Any]]:
    return [
        (one.name, one.kind, one.default)
        for one in inspect.signature(function).parameters.values()
        if one.name != "self"
    ]


@pytest.mark.parametrize(("name", "kind"), list(_implemented()))
def test_a_module_has_the_functions_of_its_capability(name: str, kind: type[object]) -> None:
    module: Any = required_capability(named(name), kind)
    methods = {method: function for method, function in vars(kind).items() if inspect.isfunction(function)}
    methods.pop("__init__", None)
    for method, function in methods.items():
        if not method.startswith("_"):
            assert _parameters(getattr(module, method)) == _parameters(function), method
            assert method in module.__all__


def test_every_capability_has_an_implementation() -> None:
    implemented = {kind.__name__ for _, kind in _implemented()}
    assert implemented == {*capabilities.__all__, "RetentionPolicy"} - {"Relocation"}


def test_a_source_without_capabilities_has_none() -> None:
    assert not has_capability(Toy(), BackupContents)
    assert capability(Toy(), BackupContents) is None
    with pytest.raises(AssertionError, match="toy has no BackupContents"):
        required_capability(Toy(), BackupContents)
