"""Numbers of examples of slow property tests."""

from hypothesis import settings

_MIN_EXAMPLES = 5


def fewer_examples(divisor: int) -> settings:
    """Divide the number of examples of the loaded profile."""
    return settings(max_examples=max(_MIN_EXAMPLES, settings.default.max_examples // divisor))
