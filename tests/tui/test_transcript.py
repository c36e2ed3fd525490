"""Tests of the transcript widget without the app around it."""

import asyncio

from textual.app import App, ComposeResult

from backscroll.tui.blocks import Block
from backscroll.tui.transcript import Transcript


class TranscriptOnly(App[None]):
    def compose(self) -> ComposeResult:
        yield Transcript()


def test_a_match_is_found_before_the_styles_are_loaded() -> None:
    """A worker can finish before Textual has applied its style sheet to the widget."""

    async def run() -> None:
        app = TranscriptOnly()
        async with app.run_test():
            transcript = app.query_one(Transcript)
            transcript._component_styles.clear()
            transcript._cached_painter = None
            transcript.highlight("clocks")
            transcript.begin_load(target=("claude-code:a", 0))
            lines = (("Departures are late.", "plain"), ("Since the clocks went back.", "plain"))
            transcript.add_blocks([Block("prompt", ("claude-code:a", 0), body=lines)])
            assert transcript.cursor == 1
            app.stylesheet.update(app)

    asyncio.run(run())
