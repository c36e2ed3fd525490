"""A session in short, to go on with elsewhere: drawn from it by rules, and nothing said that is not in it."""

from backscroll.render.briefing.brief import brief
from backscroll.render.briefing.value import SECTIONS, Briefing, Point, Section
from backscroll.render.briefing.writing import briefing_document, briefing_lines

__all__ = ["SECTIONS", "Briefing", "Point", "Section", "brief", "briefing_document", "briefing_lines"]
