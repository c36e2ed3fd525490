"""The colours of a theme for the parts of a widget that paints its own lines."""

from collections.abc import Iterable

from rich.style import Style
from textual.widget import Widget

__all__ = ["tones_of"]


def tones_of(widget: Widget, prefix: str, names: Iterable[str]) -> dict[str, Style]:
    """How each part is painted; what the theme does not say of it shows what is below."""
    ground = widget.background_colors[1]
    tones: dict[str, Style] = {}
    for name in names:
        styles = widget.get_component_styles(f"{prefix}--{name}")
        color = (ground + styles.color).rich_color if styles.has_rule("color") else None
        behind = (ground + styles.background).rich_color if styles.has_rule("background") else None
        tones[name] = Style(color=color, bgcolor=behind) + styles.text_style
    return tones
