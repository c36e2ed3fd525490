"""Counts of fragments, their rollups by 15-minute bucket, and the totals of sessions.

Rollups make statistics over years quick. A fragment is counted in a single pass over its rows. Most messages
of a bucket are equal in everything that is counted. They are grouped first, and each group is then counted
once.
"""

import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import chain
from operator import itemgetter
from typing import Any, NamedTuple

from msgspec import Struct, field

from backscroll.archive.connection import from_ms
from backscroll.archive.derive.usage import NO_MESSAGE
from backscroll.archive.storage.strings import FIXED_STRING_IDS, StringLookup
from backscroll.model.dates import iso
from backscroll.model.message import PLACEHOLDER_KINDS, TYPED_KINDS
from backscroll.model.statistics import PROMPT_SIZES

# Reasons why a message is not counted, or not everywhere. A row contains their sum.
_COPIED = 1  # another session contained it first
_REPEATED = 2  # in a subagent's file, and counted in the session
_EARLIER = 4  # in another fragment of the same session, and counted there

BUCKET_MS = 900_000  # the largest span that never crosses midnight in any time zone
UNDATED_BUCKET = -1  # messages without a time
MAX_IDLE_MS = 300_000  # a longer gap between messages is not active time
BATCH_ROWS = 10_000
FETCH_ROWS = 4096

_SYSTEM, _USER, _TOOL = (FIXED_STRING_IDS[text] for text in ("system", "user", "tool"))
_COMPLETED, _FAILED, _ACCEPTED = (FIXED_STRING_IDS[text] for text in ("completed", "failed", "accepted"))
_AT, _TOOL_NAME, _IS_ACTIVE, _SKIPPED = 0, 4, 7, -1  # columns of _MESSAGES
_GROUP_KEY = itemgetter(slice(1, None))  # all columns except the time
_BUCKET = f"coalesce(m.at / {BUCKET_MS}, {UNDATED_BUCKET})"
_MESSAGES = (
    f"select at, {_BUCKET}, role_string_id, kind_string_id, tool_string_id, model_string_id,"  # noqa: S608
    " agent_string_id, is_active, status_string_id, {skipped} from message m where fragment_id = ?"
    " order by position"
)
_EDITS = (
    f"select e.path, e.lines_added, e.lines_removed, m.position, m.at, {_BUCKET}, m.tool_string_id,"  # noqa: S608
    " m.model_string_id, m.status_string_id, m.decision_string_id, {skipped}"
    " from edit e cross join message m on m.fragment_id = e.fragment_id and m.position = e.position"
    " where e.fragment_id = ? and m.is_active order by e.position"
)
# The file of a forked subagent begins with the response that started it, under a new id.
_IS_REPEATED = (
    "(exists (select 1 from message o join fragment p on p.id = o.fragment_id"
    " where o.call_hash = m.call_hash and not p.is_subagent)"
    " or m.record_hash in"
    " (select r.record_hash from response r where r.fragment_id = m.fragment_id and r.is_copy = 1"
    # Not if the file was moved: then the subagent's own file at the former path produced the response.
    "  and not exists (select 1 from response o join fragment p on p.id = o.fragment_id"
    "   join fragment f on f.id = r.fragment_id where o.response_hash = r.response_hash and not o.is_copy"
    "   and p.is_subagent and p.external_id = f.external_id"
    "   and p.parent_external_id is f.parent_external_id)))"
)
_TYPED_KINDS = f"select id from string where text in ({', '.join('?' * len(TYPED_KINDS))})"  # noqa: S608
_IS_PLACEHOLDER = (
    "coalesce({message}.kind_string_id in (select id from string where text in"  # noqa: S608 - constants
    f" ({', '.join(map(repr, PLACEHOLDER_KINDS))})), 0)"
)
# Models of responses that have only empty text, as in `_count_groups`.
_MODELS_WITHOUT_MESSAGE = (
    f"select model_string_id, count(*) from response where fragment_id = ? and record_hash = {NO_MESSAGE}"  # noqa: S608
    " and model_string_id is not null and is_subagent <= ? group by 1"
)
_INSERT_ACTIVITY = "insert into activity_rollup values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_INSERT_TOOLS = "insert into tool_rollup values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
# Counts each response once: is_copy = 1 means that another fragment produced it.
_INSERT_TOKENS = (
    f"insert into token_rollup select fragment_id, coalesce(at / {BUCKET_MS}, {UNDATED_BUCKET}),"  # noqa: S608
    " coalesce(model_string_id, 0), coalesce(speed_string_id, 0),"
    f" {' + '.join(f'(prompt > {size})' for size in PROMPT_SIZES)} as prompt_size_class, count(*),"
    " sum(coalesce(input_tokens, 0)), sum(coalesce(output_tokens, 0)),"
    " sum(coalesce(cache_creation_tokens, 0) - coalesce(cache_creation_1h_tokens, 0)),"
    " sum(coalesce(cache_creation_1h_tokens, 0)), sum(coalesce(cache_read_tokens, 0)), sum(cost_usd),"
    " max(is_lower_bound)"
    " from (select *, coalesce(input_tokens, 0) + coalesce(cache_creation_tokens, 0)"
    "  + coalesce(cache_read_tokens, 0) as prompt"
    "  from response where fragment_id = ? and is_copy is not 1) group by 2, 3, 4, 5"
)
_SUM_TOKENS = (
    "select sum(input_tokens + output_tokens + cache_write_tokens + cache_write_1h_tokens"
    " + cache_read_tokens), max(is_lower_bound) from token_rollup where fragment_id = ?"
)


class Decision(NamedTuple):
    """An edit that the user, or a standing permission, accepted or rejected."""

    tool: int | None
    path: str
    decision: int
    position: int
    at: int | None


class FragmentCounts(Struct):
    """Counts of one fragment. Strings are given by id, times in milliseconds."""

    # Active messages except system messages, by inlined subagent.
    messages: Counter[int | None] = field(default_factory=Counter)
    interactions: int = 0
    first_at: int | None = None
    last_at: int | None = None
    tools: list[tuple[int, int | None]] = field(default_factory=list)  # of active calls, with their times
    models: Counter[int] = field(default_factory=Counter)  # without those of inlined subagents
    agents: set[int] = field(default_factory=set)  # inlined subagents, also of messages counted elsewhere
    changes: int = 0
    decisions: list[Decision] = field(default_factory=list)
    tokens: int | None = None
    is_lower_bound: bool = False


class _MessageCounts(Struct):
    """Message counts of one bucket."""

    messages: int = 0
    subagent_messages: int = 0
    prompts: int = 0
    calls: int = 0
    failures: int = 0


class _ToolCounts(Struct):
    """Counts of one tool with one model in one bucket."""

    messages: int = 0
    calls: int = 0
    failures: int = 0
    lines_added: int = 0
    lines_removed: int = 0
    decided: int = 0
    accepted: int = 0


class _FragmentRollup(Struct):
    """Counts of one fragment by bucket."""

    activity: defaultdict[int, _MessageCounts] = field(default_factory=lambda: defaultdict(_MessageCounts))
    tools: defaultdict[tuple[int, int, int], _ToolCounts] = field(  # by bucket, tool and model
        default_factory=lambda: defaultdict(_ToolCounts)
    )
    active_ms: dict[int, int] = field(default_factory=dict)  # each span in the bucket in which it ends


class RollupWriter:
    """Writes rollup rows in batches of many fragments."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._fragment_ids: list[tuple[int]] = []
        self._activity: list[tuple[int, ...]] = []
        self._tools: list[tuple[int, ...]] = []

    def write(self, fragment_id: int, rollup: _FragmentRollup) -> None:
        """Replace the activity and tool rows of a fragment."""
        edits = {bucket: [0, 0, 0, 0] for bucket in rollup.activity}
        for (bucket, tool, model), counts in rollup.tools.items():
            changes = counts.lines_added, counts.lines_removed, counts.decided, counts.accepted
            key = fragment_id, bucket, tool, model
            self._tools.append((*key, counts.messages, counts.calls, counts.failures, *changes))
            if any(changes):
                edits[bucket] = [a + b for a, b in zip(edits[bucket], changes, strict=True)]
        for bucket, sums in rollup.activity.items():
            self._activity.append(
                (
                    fragment_id,
                    bucket,
                    sums.messages,
                    sums.subagent_messages,
                    sums.prompts,
                    sums.calls,
                    sums.failures,
                    rollup.active_ms.get(bucket, 0),
                    *edits[bucket],
                )
            )
        self._fragment_ids.append((fragment_id,))
        if len(self._tools) > BATCH_ROWS:
            self.flush()

    def flush(self) -> None:
        """Write the current batch."""
        db = self._db
        db.executemany("delete from activity_rollup where fragment_id = ?", self._fragment_ids)
        db.executemany("delete from tool_rollup where fragment_id = ?", self._fragment_ids)
        db.executemany(_INSERT_ACTIVITY, self._activity)
        db.executemany(_INSERT_TOOLS, self._tools)
        self._fragment_ids, self._activity, self._tools = [], [], []

    def delete_tokens(self, fragment_id: int) -> None:
        """Delete the token rows of a fragment: they count elsewhere or not at all."""
        self._db.execute("delete from token_rollup where fragment_id = ?", [fragment_id])

    def write_tokens(self, fragment_id: int) -> tuple[int | None, bool]:
        """Replace the token rows of a fragment. Return the sum of tokens and whether it is a lower bound.

        The sum is None if no response has token counts.
        """
        self.delete_tokens(fragment_id)
        self._db.execute(_INSERT_TOKENS, [fragment_id])
        tokens, is_lower_bound = self._db.execute(_SUM_TOKENS, [fragment_id]).fetchone()
        return tokens, bool(is_lower_bound)


def count_fragment(
    db: sqlite3.Connection,
    rollup_writer: RollupWriter,
    fragment_id: int,
    earlier: Sequence[int],
    later: Sequence[int] = (),
    *,
    is_subagent: bool,
    is_discarded: bool = False,
) -> FragmentCounts:
    """Count a fragment and write its rollups. The tokens of a discarded result do not count.

    `earlier` and `later` are the other fragments of the same session, in the order in which they are counted.
    A message that two files of a session contain counts once. A placeholder counts only if no fragment has
    its message.
    """
    skipped = f"(m.copied_from_string_id is not null) * {_COPIED}"
    if is_subagent:
        skipped += f" + {_IS_REPEATED} * {_REPEATED}"
    if earlier or later:
        skipped += f" + {_is_counted_elsewhere(earlier, later)} * {_EARLIER}"
    counts = FragmentCounts()
    rollup = _FragmentRollup()
    groups = _group_messages(db.execute(_MESSAGES.format(skipped=skipped), [fragment_id]), counts, rollup)
    typed_kinds = {None, *(id_ for (id_,) in db.execute(_TYPED_KINDS, TYPED_KINDS))}
    _count_groups(groups, counts, rollup, typed_kinds, is_subagent=is_subagent)
    _count_edits(db.execute(_EDITS.format(skipped=skipped), [fragment_id]), counts, rollup)
    rollup_writer.write(fragment_id, rollup)
    if is_discarded:
        rollup_writer.delete_tokens(fragment_id)
    else:
        counts.tokens, counts.is_lower_bound = rollup_writer.write_tokens(fragment_id)
    counts.models.update(dict(db.execute(_MODELS_WITHOUT_MESSAGE, [fragment_id, is_subagent])))
    return counts


def _is_counted_elsewhere(earlier: Sequence[int], later: Sequence[int]) -> str:
    """Return an SQL expression: whether another fragment of the session counts the message ``m``."""
    other = "select 1 from message e where e.record_hash = m.record_hash"
    is_placeholder = _IS_PLACEHOLDER.format(message="m")
    is_other_placeholder = _IS_PLACEHOLDER.format(message="e")
    before, others = (", ".join(map(str, ids)) for ids in (earlier, [*earlier, *later]))
    repeated = (
        f"exists ({other} and e.fragment_id in ({before}) and {is_other_placeholder} <= {is_placeholder})"
    )
    filled = (
        f"{is_placeholder} and exists ({other} and e.fragment_id in ({others})"
        f" and not {is_other_placeholder} and e.is_active >= m.is_active)"
    )
    return f"({repeated} or {filled})"


def _group_messages(
    cursor: sqlite3.Cursor, counts: FragmentCounts, rollup: _FragmentRollup
) -> Counter[tuple[Any, ...]]:
    """Collect tools and times, which depend on the order, and return the number of messages per group."""
    groups: Counter[tuple[Any, ...]] = Counter()
    active_ms = rollup.active_ms
    latest = -MAX_IDLE_MS
    while rows := cursor.fetchmany(FETCH_ROWS):
        groups.update(map(_GROUP_KEY, rows))
        counts.tools += [
            (row[_TOOL_NAME], row[_AT])
            for row in rows
            if row[_TOOL_NAME] is not None and row[_IS_ACTIVE] and row[_SKIPPED] < _EARLIER
        ]
        times = [row[_AT] for row in rows if row[_AT] is not None and row[_SKIPPED] < _EARLIER]
        if times:
            first, last = min(times), max(times)
            counts.first_at = first if counts.first_at is None else min(first, counts.first_at)
            counts.last_at = last if counts.last_at is None else max(last, counts.last_at)
        if any(map(itemgetter(_SKIPPED), rows)):
            times = [row[_AT] for row in rows if row[_AT] is not None and not row[_SKIPPED]]
        # Times are not always in order. The span before the latest time so far is already counted.
        for at in times:
            if at > latest:
                if at - latest < MAX_IDLE_MS:
                    active_ms[at // BUCKET_MS] = active_ms.get(at // BUCKET_MS, 0) + at - latest
                latest = at
    return groups


def _count_groups(
    groups: Counter[tuple[Any, ...]],
    counts: FragmentCounts,
    rollup: _FragmentRollup,
    typed_kinds: set[int | None],
    *,
    is_subagent: bool,
) -> None:
    """Count groups of equal messages. Only groups without any reason to skip go into the rollup."""
    for (bucket, role, kind, tool, model, agent, is_active, status, skipped), count in groups.items():
        if agent is not None:
            counts.agents.add(agent)
        if skipped >= _EARLIER:
            continue
        if model is not None and (is_subagent or agent is None):
            counts.models[model] += count
        activity = rollup.activity[bucket] if not skipped else None
        if not is_active or role == _SYSTEM:
            continue
        counts.messages[agent] += count
        is_prompt = role == _USER and agent is None and kind in typed_kinds
        if is_prompt and not skipped & _COPIED:
            counts.interactions += count
        if activity is None:
            continue
        is_call = role == _TOOL
        failures = count if is_call and status == _FAILED else 0
        activity.messages += count if agent is None else 0
        activity.subagent_messages += count if agent is not None else 0
        activity.prompts += count if is_prompt else 0
        activity.calls += count if is_call else 0
        activity.failures += failures
        if is_call or model is not None:
            tool_counts = rollup.tools[bucket, tool or 0 if is_call else 0, model or 0]
            tool_counts.messages += count
            tool_counts.calls += count if is_call else 0
            tool_counts.failures += failures


def _count_edits(rows: Iterable[tuple[Any, ...]], counts: FragmentCounts, rollup: _FragmentRollup) -> None:
    for path, added, removed, position, at, bucket, tool, model, status, decision, skipped in rows:
        if skipped >= _EARLIER:
            continue
        is_completed = status == _COMPLETED
        if is_completed and not skipped & _COPIED:
            counts.changes += added + removed
        if decision is not None:
            counts.decisions.append(Decision(tool, path, decision, position, at))
        if not skipped:
            tool_counts = rollup.tools[bucket, tool or 0, model or 0]
            tool_counts.lines_added += added if is_completed else 0
            tool_counts.lines_removed += removed if is_completed else 0
            tool_counts.decided += decision is not None
            tool_counts.accepted += decision == _ACCEPTED


class SessionTotals:
    """Totals of the fragments of a session, best first, and of its subagents.

    `agent_id` is the id of a subagent without a known parent, treated as a session of its own.
    """

    def __init__(
        self,
        strings: StringLookup,
        own: Sequence[FragmentCounts],
        subagents: Iterable[Sequence[FragmentCounts]] = (),
        *,
        agent_id: str | None = None,
    ) -> None:
        self._strings = strings
        self._own = own
        every = [*own, *chain.from_iterable(subagents)]
        known_tokens = [counts.tokens for counts in every if counts.tokens is not None]
        self.tokens = sum(known_tokens) if known_tokens else None
        self.has_own_tokens = self.tokens is not None
        self.is_lower_bound = any(counts.is_lower_bound for counts in every)
        self.message_count = self.messages_of(agent_id)
        self.interactions = sum(counts.interactions for counts in own)
        first = min((counts.first_at for counts in own if counts.first_at is not None), default=None)
        last = max((counts.last_at for counts in own if counts.last_at is not None), default=None)
        self.first_at = from_ms(first) if first is not None else None
        self.last_at = from_ms(last) if last is not None else None
        self.duration_ms = last - first if first is not None and last is not None else None
        self.tools = self._tools()
        self.models = self._models()
        self.inlined = {strings[id_] for counts in own for id_ in counts.agents} - {agent_id}
        self.changes = sum(counts.changes for counts in every)
        self.decisions = self._decisions()

    def messages_of(self, agent_id: str | None) -> int:
        """Return the number of messages of an inlined subagent, or of the session itself."""
        string_id = self._strings.find_id(agent_id) if agent_id is not None else None
        return sum(counts.messages[string_id] for counts in self._own)

    @property
    def all_messages(self) -> int:
        """Number of messages of the session and its inlined subagents."""
        return sum(counts.messages.total() for counts in self._own)

    @property
    def acceptance_rate(self) -> float | None:
        """Share of accepted edits; None if there was no decision."""
        if not self.decisions:
            return None
        accepted = [decision for decision in self.decisions if decision["decision"] == "accepted"]
        return len(accepted) / len(self.decisions)

    def _tools(self) -> list[str]:
        """Return the tools in the order of their calls, over several files by time."""
        calls = list(chain.from_iterable(counts.tools for counts in self._own))
        if len(self._own) > 1:
            calls.sort(key=lambda call: (call[1] is None, call[1]))
        return [self._strings[tool] for tool, _ in calls]

    def _models(self) -> list[str]:
        """Return the models, by number of messages."""
        found = Counter[str]()
        for counts in self._own:
            for model, count in counts.models.items():
                found[self._strings[model]] += count
        return sorted(found, key=lambda model: (-found[model], model))

    def _decisions(self) -> list[dict[str, Any]]:
        """Return the decisions on edits, as stored in `conversations.acceptance_decisions`."""
        strings = self._strings
        return [
            {
                "what": strings[decision.tool] if decision.tool is not None else None,
                "where": decision.path,
                "decision": strings[decision.decision],
                "position": decision.position,
                "at": iso(from_ms(decision.at)) if decision.at is not None else None,
            }
            for counts in self._own
            for decision in counts.decisions
        ]
