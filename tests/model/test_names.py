"""Names of the model are loaded when they are first asked for."""

import pytest

from backscroll import model


@pytest.mark.parametrize("name", model.__all__)
def test_every_name_of_the_model_can_be_asked_for(name: str) -> None:
    assert getattr(model, name) is not None


def test_a_name_that_the_model_does_not_have_is_an_error() -> None:
    with pytest.raises(AttributeError, match="nonsense"):
        _ = model.nonsense  # type: ignore[attr-defined]
