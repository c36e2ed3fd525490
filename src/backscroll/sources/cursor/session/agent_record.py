"""Agent record of a session. It contains the conversation even if the bubbles are lost."""

import binascii
from base64 import b64decode
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import cached_property

from backscroll.model.message import Message, ToolCall
from backscroll.model.problem import Problem
from backscroll.model.stream import ToolResult, calls_by_id
from backscroll.readers.protobuf import Record
from backscroll.sources.cursor.database.decode import UnitReport, as_text
from backscroll.sources.cursor.database.keys import BLOB_PREFIX, CHECKPOINT_FAMILY
from backscroll.sources.cursor.database.session_rows import RowLoader
from backscroll.sources.cursor_graph.blobs import BlobLoader
from backscroll.sources.cursor_graph.conversation import Conversation
from backscroll.sources.cursor_graph.records import ConversationState, read_turns

BLOB_ID_DIGITS = 64  # SHA-256 in hexadecimal


class AgentRecord:
    """Blob graph of one session, decoded on demand."""

    def __init__(
        self,
        row_loader: RowLoader,
        session_id: str,
        conversation_state: object,
        model: str | None,
        report: UnitReport,
    ) -> None:
        self._row_loader = row_loader
        self._session_id = session_id
        self._encoded_state = as_text(conversation_state)
        self._model = model
        self._report = report

    @cached_property
    def state(self) -> ConversationState | None:
        """Return the root from the session's record, else from its checkpoint; None if there is none."""
        root = self._load_root()
        state = ConversationState(root) if root else None
        if state is not None and state.fault:
            self._report.add_problem(
                self._report.record, "damaged-record", f"conversationState: {state.fault}"
            )
        return state if state is not None and not state.is_empty else None

    def _load_root(self) -> bytes:
        root = decode_state(self._encoded_state)
        if root:
            return root
        if root is None:
            self._report.add_problem(
                self._report.record, "unexpected-shape", "conversationState is not base64"
            )
        value = self._row_loader.value_by_key(f"{CHECKPOINT_FAMILY}:{self._session_id}")
        blob_id = value.decode("ascii", "replace").strip(' "') if isinstance(value, bytes) else ""
        return (BlobLoader(self._fetch).get(blob_id) or b"") if len(blob_id) == BLOB_ID_DIGITS else b""

    @property
    def workspace_uris(self) -> list[str]:
        """Return the folders in the agent's context."""
        return self.state.workspace_uris if self.state is not None else []

    def items(
        self, started_at: datetime | None, ended_at: datetime | None
    ) -> Iterator[Message | ToolResult | Problem]:
        """Return the conversation from the agent's record."""
        if self.state is None:
            return iter(())
        conversation = Conversation(
            self.state,
            BlobLoader(self._fetch),
            path=self._report.path,
            counts=self._report.counts,
            model=self._model,
            started_at=started_at,
            ended_at=ended_at,
        )
        return conversation.items()

    @cached_property
    def prompts(self) -> Mapping[str, str]:
        """Return the texts of prompts by bubble id."""
        if self.state is None:
            return {}
        blobs = BlobLoader(self._fetch)
        turns = [turn for turn in read_turns(self.state.turns, blobs) if turn.user_id and turn.text.strip()]
        texts = {turn.user_id: turn.text for turn in turns}
        prompts: dict[str, str] = {}
        for user_id, data in blobs.each([turn.user_id or "" for turn in turns]):
            if bubble_id := Record(data or b"").text(2):
                prompts[bubble_id] = texts[user_id]
        return prompts

    @cached_property
    def calls(self) -> Mapping[str, ToolCall]:
        """Return tool calls with their results, by call id."""
        return calls_by_id(self.items(None, None))

    def _fetch(self, ids: Sequence[str]) -> Mapping[str, bytes]:
        found = self._row_loader.values_by_key([BLOB_PREFIX + each for each in ids])
        return {key.removeprefix(BLOB_PREFIX): value for key, value in found.items()}


def decode_state(text: str) -> bytes | None:
    """Decode ``conversationState``; None if it is not base64. An empty text is an empty state."""
    encoded = "".join(text.removeprefix("~").split())
    try:
        return b64decode(encoded + "=" * (-len(encoded) % 4), validate=True)
    except (binascii.Error, ValueError):
        return None
