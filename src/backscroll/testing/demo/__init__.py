"""A made-up history of some months, written as the tools themselves would have written it.

Four projects, told by the modules named after them; each session is told once, in
`scene`'s words, and written down by the scene of the tool it was held in. Edits are
made to the projects' files as the story goes, so that commits hold what the
sessions did.
"""

from backscroll.testing.demo.writer import Demo, delete_session, tell, write

__all__ = ["Demo", "delete_session", "tell", "write"]
