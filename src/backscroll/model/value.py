"""Base class of the immutable values that every command loads."""

from typing import Any, ClassVar, Self, dataclass_transform


@dataclass_transform(frozen_default=True)
class Value:
    """Immutable value with the annotated fields, like a frozen dataclass. ``vars`` returns the fields.

    Defining a subclass takes a ninth of the instructions of a `NamedTuple`, and does not load msgspec.
    Creating an instance takes longer: where there can be thousands, use `NamedTuple` or `Struct`.
    """

    _fields: ClassVar[tuple[str, ...]]
    _defaults: ClassVar[dict[str, Any]]

    def __init_subclass__(cls) -> None:
        cls._fields = tuple(cls.__annotations__)
        cls._defaults = {name: vars(cls)[name] for name in cls._fields if name in vars(cls)}

    def __init__(self, *values: Any, **named_values: Any) -> None:
        fields = dict(zip(self._fields, values, strict=False))
        if named_values or len(values) != len(self._fields):
            given = self._defaults | fields | named_values
            if given.keys() != set(self._fields) or len(values) > len(self._fields):
                raise TypeError(f"{type(self).__name__} takes {', '.join(self._fields)}")
            fields = {name: given[name] for name in self._fields}
        vars(self).update(fields)

    def replace(self, **changes: Any) -> Self:
        """Return a copy with some fields changed."""
        return type(self)(**vars(self) | changes)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable")

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash(tuple(vars(self).values()))

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__name__}({fields})"
