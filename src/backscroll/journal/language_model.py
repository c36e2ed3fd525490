"""Run a language model through the `llm` program: any provider or a local model, with the user's own keys.

The program runs in a process of its own. So a hanging provider can be stopped, and an installation of `llm`
outside of this environment works too.
"""

import shutil
import subprocess
import sys
from importlib.util import find_spec

from backscroll.model.text import one_line

__all__ = ["ModelFailureError", "run_model"]

TIMEOUT_SECONDS = 180.0
_MAX_REASON_CHARS = 300


class ModelFailureError(Exception):
    """The model gave no answer. The message is a sentence for users."""


def run_model(name: str, instructions: str, prompt: str, *, timeout_seconds: float = TIMEOUT_SECONDS) -> str:
    """Return the answer of a model. Nothing is stored in the log of `llm`. Raises `ModelFailureError`."""
    command = [*_program(), "prompt", "-m", name, "-s", instructions, "--no-log", "--no-stream"]
    try:
        done = subprocess.run(
            command,
            input=prompt,
            capture_output=True,
            text=True,
            encoding="utf-8",
            errors="replace",
            timeout=timeout_seconds,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise ModelFailureError(
            f"The model {name} did not answer within {timeout_seconds:g} seconds."
        ) from error
    except OSError as error:
        raise ModelFailureError(f"llm cannot be run: {error.strerror}.") from error
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        reason = one_line(lines[-1] if lines else "no message", _MAX_REASON_CHARS)
        raise ModelFailureError(f"The model {name} failed: {reason.removeprefix('Error: ').rstrip('.')}.")
    if not done.stdout.strip():
        raise ModelFailureError(f"The model {name} gave an empty answer.")
    return done.stdout


def _program() -> list[str]:
    if find_spec("llm") is not None:
        return [sys.executable, "-m", "llm"]
    path = shutil.which("llm")
    if path is None:
        raise ModelFailureError(
            "The program llm is not installed. Run 'pip install backscroll[llm]', or use the prompt"
            " commit-story of the MCP server."
        )
    return [path]
