"""A session in short, to go on with elsewhere: drawn from it by rules, and nothing said that is not in it."""

from backscroll.render.handoff.builder import build_handoff
from backscroll.render.handoff.output import handoff_document, handoff_lines
from backscroll.render.handoff.types import SECTIONS, Handoff, Point, Section

__all__ = ["SECTIONS", "Handoff", "Point", "Section", "build_handoff", "handoff_document", "handoff_lines"]
