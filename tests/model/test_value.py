"""Immutable values that every command loads."""

import copy
import pickle

import pytest

from backscroll.model.value import Value


class Point(Value):
    x: int
    y: int = 0
    label: str = ""

    @property
    def sum(self) -> int:
        return self.x + self.y


def test_fields_are_given_by_position_or_name_or_have_defaults() -> None:
    assert vars(Point(1)) == {"x": 1, "y": 0, "label": ""}
    assert vars(Point(1, 2, "a")) == {"x": 1, "y": 2, "label": "a"}
    assert list(vars(Point(label="b", x=3))) == ["x", "y", "label"]
    assert Point(1, y=2).sum == 3


@pytest.mark.parametrize(
    ("values", "named"), [((), {}), ((1, 2, "", 4), {}), ((1,), {"z": 1}), ((), {"y": 1})]
)
def test_missing_and_unknown_fields_are_refused(values: tuple[int, ...], named: dict[str, int]) -> None:
    with pytest.raises(TypeError, match="Point takes x, y, label"):
        Point(*values, **named)  # type: ignore[arg-type]


def test_values_with_equal_fields_are_equal() -> None:
    assert Point(1, 2) == Point(x=1, y=2)
    assert Point(1, 2) != Point(2, 1)
    assert Point(1) != (1, 0, "")
    assert len({Point(1), Point(1, 0), Point(2)}) == 2


def test_a_value_cannot_be_changed() -> None:
    point = Point(1)
    with pytest.raises(AttributeError, match="immutable"):
        point.x = 2  # type: ignore[misc]
    assert point.replace(y=5) == Point(1, 5)
    assert point == Point(1)


def test_a_value_can_be_copied_and_sent_to_another_process() -> None:
    assert copy.deepcopy(Point(1, 2)) == Point(1, 2)
    assert pickle.loads(pickle.dumps(Point(1, 2))) == Point(1, 2)


def test_a_value_is_printed_with_its_fields() -> None:
    assert repr(Point(1, label="a")) == "Point(x=1, y=0, label='a')"
