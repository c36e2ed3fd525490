"""Frame of an HTML page: a single file that loads nothing and runs only its own script."""

from base64 import b64encode
from functools import lru_cache
from hashlib import sha256
from html import escape
from importlib.resources import files

from backscroll.model.text import sanitize

__all__ = ["page_end", "page_start"]

_ICON = (
    "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E"
    "%3Cpath d='M8 2a6 6 0 1 1-5.2 3M2 1v4h4' fill='none' stroke='%23b4582a' stroke-width='2'/%3E%3C/svg%3E"
)


@lru_cache(maxsize=8)
def _asset(name: str) -> str:
    return files("backscroll.render").joinpath("assets", name).read_text("utf-8")


def _csp_hash(text: str) -> str:
    return b64encode(sha256(text.encode()).digest()).decode()


def page_start(title: str, name: str) -> str:
    """Return everything before the content. `name` selects the script and the class of the page."""
    style, script = _asset("page.css"), _asset("theme.js") + _asset(f"{name}.js")
    policy = (
        f"default-src 'none'; style-src 'sha256-{_csp_hash(style)}'; script-src 'sha256-{_csp_hash(script)}';"
        " img-src data:; base-uri 'none'; form-action 'none'"
    )
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n<meta name="generator" content="Backscroll">\n'
        f'<link rel="icon" href="{_ICON}">\n'
        f"<title>{escape(sanitize(title))}</title>\n<style>{style}</style>\n</head>\n"
        f'<body class="{name}">\n'
    )


def page_end(name: str) -> str:
    """Return everything after the content."""
    return f"<script>{_asset('theme.js')}{_asset(f'{name}.js')}</script>\n</body>\n</html>\n"
