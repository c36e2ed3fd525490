"""The transcript panel: a session as foldable blocks, their layout, the widget, and loading."""
