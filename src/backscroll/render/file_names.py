"""File names of exported sessions."""

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence

from backscroll.model.session import SessionSummary
from backscroll.model.text import sanitize

_ID_CHARS = 8
_MAX_TITLE_CHARS = 60


def file_names(summaries: Sequence[SessionSummary], suffix: str) -> list[str]:
    """Return a stable file name for each session. The whole id is used only if two names would be equal."""
    names = [f"{_stem(one)}-{_plain(one.id[:_ID_CHARS])}.{suffix}" for one in summaries]
    shared = Counter(name.casefold() for name in names)
    return [
        f"{_stem(one)}-{_plain(one.id)}{_parent(one)}.{suffix}" if shared[name.casefold()] > 1 else name
        for one, name in zip(summaries, names, strict=True)
    ]


def file_name(summary: SessionSummary, suffix: str = "md") -> str:
    """Return the file name of one session."""
    return file_names([summary], suffix)[0]


def _stem(summary: SessionSummary) -> str:
    day = summary.created_at.strftime("%Y-%m-%d") if summary.created_at is not None else "undated"
    slug = _slug(summary.title or "")
    return f"{day}-{slug}" if slug else day


def _parent(summary: SessionSummary) -> str:
    return f"-{_plain(summary.parent_ref.partition(':')[2][:_ID_CHARS])}" if summary.parent_ref else ""


def _slug(title: str) -> str:
    words = re.findall(r"\w+", unicodedata.normalize("NFKC", sanitize(title[:1000])).lower().replace("'", ""))
    slug = "-".join(words).replace("_", "-")
    return (
        slug[:_MAX_TITLE_CHARS].rpartition("-")[0] or slug[:_MAX_TITLE_CHARS]
        if len(slug) > _MAX_TITLE_CHARS
        else slug
    )


def _plain(id_: str) -> str:
    return re.sub(r"[^A-Za-z0-9-]", "-", id_)
