"""What an exported session's file is called: its day, its title, and enough of its id."""

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence

from backscroll.model import SessionSummary
from backscroll.model.sanitize import sanitize

__all__ = ["file_names"]

_SHORT = 8  # characters of an id
_LONGEST = 60  # characters of a title


def file_names(summaries: Sequence[SessionSummary], suffix: str) -> list[str]:
    """A name for each, the same whenever and with whichever others it is exported.

    Only where two would share one does the whole id go in.
    """
    names = [f"{_stem(one)}-{_plain(one.id[:_SHORT])}.{suffix}" for one in summaries]
    shared = Counter(name.casefold() for name in names)
    return [
        f"{_stem(one)}-{_plain(one.id)}{_parent(one)}.{suffix}" if shared[name.casefold()] > 1 else name
        for one, name in zip(summaries, names, strict=True)
    ]


def _stem(summary: SessionSummary) -> str:
    day = summary.created_at.strftime("%Y-%m-%d") if summary.created_at is not None else "undated"
    slug = _slug(summary.title or "")
    return f"{day}-{slug}" if slug else day


def _parent(summary: SessionSummary) -> str:
    return f"-{_plain(summary.parent_ref.partition(':')[2][:_SHORT])}" if summary.parent_ref else ""


def _slug(title: str) -> str:
    words = re.findall(r"\w+", unicodedata.normalize("NFKC", sanitize(title[:1000])).lower().replace("'", ""))
    slug = "-".join(words).replace("_", "-")
    return slug[:_LONGEST].rpartition("-")[0] or slug[:_LONGEST] if len(slug) > _LONGEST else slug


def _plain(id_: str) -> str:
    return re.sub(r"[^A-Za-z0-9-]", "-", id_)
