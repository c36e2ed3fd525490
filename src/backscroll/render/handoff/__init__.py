"""A session in short, to go on with elsewhere: drawn from it by rules, and nothing said that is not in it."""

from backscroll.render.handoff.builder import brief
from backscroll.render.handoff.output import briefing_document, briefing_lines
from backscroll.render.handoff.types import SECTIONS, Briefing, Point, Section

__all__ = ["SECTIONS", "Briefing", "Point", "Section", "brief", "briefing_document", "briefing_lines"]
