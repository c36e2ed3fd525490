"""Theme styles for widgets that render their own lines."""

from collections.abc import Iterable

from rich.style import Style
from textual.widget import Widget


def component_styles(widget: Widget, prefix: str, names: Iterable[str]) -> dict[str, Style]:
    """Return the style of each component class. A color that the theme does not set stays transparent."""
    background = widget.background_colors[1]
    styles: dict[str, Style] = {}
    for name in names:
        rules = widget.get_component_styles(f"{prefix}--{name}")
        color = (background + rules.color).rich_color if rules.has_rule("color") else None
        bgcolor = (background + rules.background).rich_color if rules.has_rule("background") else None
        styles[name] = Style(color=color, bgcolor=bgcolor) + rules.text_style
    return styles
