"""Stars, tags, notes and titles. Changes are forms of the session's page."""

from urllib.parse import parse_qs

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from backscroll.errors import UsageError
from backscroll.history import History
from backscroll.web.urls import decode_ref, session_url

__all__ = ["MAX_FORM_BYTES", "annotate", "read_form"]

MAX_FORM_BYTES = 64 * 1024
_MAX_NUMBER_DIGITS = 9


async def read_form(request: Request) -> dict[str, str]:
    """Return the fields of a form. Raises `UsageError` if it is too large or not a form."""
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_FORM_BYTES:
            raise UsageError("The text is too long.")
    try:
        fields = parse_qs(body.decode("utf-8"), keep_blank_values=True, max_num_fields=20)
    except ValueError as error:
        raise UsageError("The form is not valid.") from error
    return {name: values[-1] for name, values in fields.items()}


def annotate(history: History, request: Request, form: dict[str, str]) -> Response:
    """Change an annotation and return to the session, or to the page that the form names."""
    ref = decode_ref(request.path_params["ref"])
    annotations = history.annotations
    match form.get("action", ""):
        case "star":
            annotations.star(ref, True)
        case "unstar":
            annotations.star(ref, False)
        case "tag":
            annotations.tag(ref, form.get("text", "").replace(",", " ").split())
        case "untag":
            annotations.tag(ref, remove=[form.get("text", "")])
        case "add-note":
            annotations.add_note(ref, form.get("text", ""))
        case "edit-note":
            annotations.edit_note(ref, _number(form), form.get("text", ""))
        case "delete-note":
            annotations.edit_note(ref, _number(form), None)
        case "rename":
            annotations.rename(ref, form.get("text", "").strip() or None)
        case action:
            raise UsageError(f"{action!r} is not an action.")
    return RedirectResponse(_return_url(form.get("next", "")) or session_url(ref), 303)


def _number(form: dict[str, str]) -> int:
    number = form.get("number", "")
    if not (number.isascii() and number.isdigit() and len(number) <= _MAX_NUMBER_DIGITS):
        raise UsageError(f"{number!r} is not the number of a note.")
    return int(number)


def _return_url(path: str) -> str:
    """Return a path on this server; empty if it leads elsewhere."""
    is_own = path.startswith("/sessions") and "\\" not in path and path.isprintable()
    return path if is_own else ""
