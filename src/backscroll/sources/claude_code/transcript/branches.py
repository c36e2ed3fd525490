"""Find the lines on the branch that Claude Code shows.

Lines form trees. A tree begins with a line without a parent in the file: at the start, after a compaction,
after a resume that points to another file. Each tree continues the same conversation. Only the path to its
last leaf is active; other branches were rewound, edited or retried. Parallel tool calls fork the tree
although all of them are active. Therefore all lines of a response, and all results of its calls, belong to
the path.
"""

from msgspec import Struct, field

__all__ = ["CAVEAT", "COMMAND", "META", "SIDE", "TALK", "Skeleton", "Tree"]

TALK = 1  # a user or assistant line
META = 2  # injected, or of another agent; never the end of a branch
CAVEAT = 4  # announces output of a local command
COMMAND = 8  # consists of command tags
SIDE = 16  # of a subagent

_ASIDE = META | CAVEAT | COMMAND  # lines attached to a branch that are not part of the conversation

_NONE = -1
_LATER = -2  # the parent is not read yet


class Skeleton(Struct, array_like=True):
    """Structure of a transcript, needed to continue reading: a few dozen bytes per line."""

    ids: list[str] = field(default_factory=list)
    parents: list[int] = field(default_factory=list)
    flags: list[int] = field(default_factory=list)
    responses: list[int] = field(default_factory=list)  # number of the response of a line, or -1
    message_counts: list[int] = field(default_factory=list)  # messages per line
    unresolved_parents: dict[int, str] = field(
        default_factory=dict
    )  # parents that were referenced before they were read
    response_numbers: dict[str, int] = field(default_factory=dict)
    follows: dict[int, int] = field(default_factory=dict)  # a line that is active if another line is active
    retracted_ids: set[str] = field(default_factory=set)  # retracted or superseded by id
    remaining_counts: dict[int, int] = field(
        default_factory=dict
    )  # messages left after a line was rewritten with fewer


class Tree:
    """Tree of the lines of a transcript."""

    def __init__(self, skeleton: Skeleton | None = None) -> None:
        kept = self.skeleton = skeleton or Skeleton()
        self.ids, self.parents, self.flags = kept.ids, kept.parents, kept.flags
        self.responses, self.message_counts, self.unresolved_parents = (
            kept.responses,
            kept.message_counts,
            kept.unresolved_parents,
        )
        self.response_numbers, self.retracted_ids, self.remaining_counts = (
            kept.response_numbers,
            kept.retracted_ids,
            kept.remaining_counts,
        )
        self._index = {id_: number for number, id_ in enumerate(kept.ids)}

    def find(self, id_: str | None) -> int:
        """Return the number of a line, or -1."""
        return self._index.get(id_, _NONE) if id_ is not None else _NONE

    def add(self, id_: str, parent: str | None, flags: int, response: str | None) -> int:
        """Add a line and return its number. A known id replaces the earlier line."""
        index = self._index
        number = index.get(id_)
        above = _NONE if parent is None or parent == id_ else index.get(parent, _LATER)
        owner = _NONE
        if response is not None:
            owner = self.response_numbers.setdefault(response, len(self.response_numbers))
        if number is None:
            number = index[id_] = len(self.ids)
            self.ids.append(id_)
            self.parents.append(above)
            self.flags.append(flags)
            self.responses.append(owner)
            self.message_counts.append(0)
        else:
            self.parents[number] = above
            self.flags[number] = flags
            self.responses[number] = owner
        if above == _LATER and parent is not None:
            self.unresolved_parents[number] = parent
        return number

    def set_message_count(self, number: int, count: int, *, call_node: int = _NONE) -> None:
        """Store the number of messages of a line, and the line of the call that it has the result of."""
        if count < self.message_counts[number]:
            self.remaining_counts[number] = count
            return
        self.message_counts[number] = count
        if self.remaining_counts:
            self.remaining_counts.pop(number, None)
        if count and call_node >= 0:
            self.skeleton.follows[number] = call_node

    def tie(self, id_: str, number: int) -> None:
        """Make a line active whenever another one is, for example a repeated line without messages."""
        follower = self.find(id_)
        if follower >= 0:
            self.skeleton.follows[follower] = number

    def abandoned(self) -> tuple[str, ...]:
        """Return the ids of the messages that the tool no longer shows."""
        return self._left(self._active() if self._forks() else None)

    def retracted(self) -> tuple[str, ...]:
        """Return the ids of messages that were retracted by id, or removed when their line was rewritten."""
        return self._left(None)

    def _forks(self) -> bool:
        """Return whether any line has two children. Without forks every line is active."""
        if any(parent in self._index for parent in self.unresolved_parents.values()):
            return True
        hung = len(self.parents) - self.parents.count(_NONE) - self.parents.count(_LATER)
        return len(set(self.parents) - {_NONE, _LATER}) < hung

    def _left(self, active: bytearray | None) -> tuple[str, ...]:
        left: list[str] = []
        remaining = self.remaining_counts
        if active is None and not remaining and not self.retracted_ids:
            return ()
        for number, told in enumerate(self.message_counts):
            if not told:
                continue
            id_ = self.ids[number]
            is_off = active is not None and not active[number] and not self.flags[number] & SIDE
            first = 0 if is_off or id_ in self.retracted_ids else remaining.get(number, told)
            left += [f"{id_}.{later}" if later else id_ for later in range(first, told)]
        return tuple(left)

    def _active(self) -> bytearray:
        parents = self._resolved()
        roots = self._roots(parents)
        active = bytearray(len(parents))
        for root, leaf in self._last_leaves(parents, roots).items():
            at = leaf
            while not active[at]:
                active[at] = 1
                if at == root:
                    break
                at = parents[at]
        self._widen(active, parents, roots)
        return active

    def _resolved(self) -> list[int]:
        """Return the parents with late references resolved and cycles removed."""
        parents = self.parents.copy()
        for number, parent in self.unresolved_parents.items():
            if parents[number] == _LATER:
                parents[number] = self._index.get(parent, _NONE)
        walk = [0] * len(parents)  # number of the walk that visited a line
        for number in range(len(parents)):
            at = number
            while at >= 0 and not walk[at]:
                walk[at] = number + 1
                at = parents[at]
            if at >= 0 and walk[at] == number + 1:  # a cycle
                first, here = at, parents[at]
                while here != at:
                    first, here = min(first, here), parents[here]
                parents[first] = _NONE
        self._line_up(parents)
        return parents

    def _line_up(self, parents: list[int]) -> None:
        """Chain the commands below a caveat one after another: they are a sequence, not a fork."""
        flags = self.flags
        caveats: dict[int, int] = {}  # the caveat above a line
        last: dict[int, int] = {}  # last message below a caveat
        for number, above in enumerate(parents):
            if above < 0:
                continue
            caveat = above if flags[above] & CAVEAT else caveats.get(above, _NONE)
            if caveat < 0:
                continue
            if above == caveat and flags[number] & COMMAND:
                parents[number] = last.get(caveat, caveat)
            caveats[number] = caveat
            if flags[number] & TALK:
                last[caveat] = number

    def _roots(self, parents: list[int]) -> list[int]:
        """Return the root of each line."""
        flags = self.flags
        roots = [_NONE] * len(parents)
        for number in range(len(parents)):
            way: list[int] = []
            at = number
            while roots[at] == _NONE:
                above = parents[at]
                way.append(at)
                if above < 0 or (flags[above] & SIDE) != (flags[at] & SIDE):
                    roots[at] = at
                    break
                at = above
            root = roots[at]
            for line in way:
                roots[line] = root
        return roots

    def _last_leaves(self, parents: list[int], roots: list[int]) -> dict[int, int]:
        """Return the last message at the end of a branch, for each tree with messages."""
        speakers = self._speakers(parents, roots)
        has_child = bytearray(len(parents))
        for number, above in enumerate(parents):
            if roots[number] != number:
                has_child[above] = 1
        leaves: dict[int, int] = {}
        for number, root in enumerate(roots):
            if has_child[number] or self.flags[number] & SIDE:
                continue
            if speakers[number] > leaves.get(root, _NONE):
                leaves[root] = speakers[number]
        return leaves

    def _speakers(self, parents: list[int], roots: list[int]) -> list[int]:
        """Return the nearest message for each line: the line itself or one of its ancestors."""
        speakers = [_LATER] * len(parents)
        for number in range(len(parents)):
            way: list[int] = []
            at = number
            while speakers[at] == _LATER:
                way.append(at)
                if self.flags[at] & (TALK | _ASIDE) == TALK:
                    speakers[at] = at
                elif roots[at] == at:
                    speakers[at] = _NONE
                else:
                    at = parents[at]
            found = speakers[at]
            for line in way:
                speakers[line] = found
        return speakers

    def _widen(self, active: bytearray, parents: list[int], roots: list[int]) -> None:
        """Activate lines that fork from the path and are not abandoned: parallel calls, notices."""
        responses = self.responses
        kept = {responses[number] for number in range(len(active)) if active[number]}
        kept.discard(_NONE)
        for number, response in enumerate(responses):
            if response in kept:
                active[number] = 1
        for number, other in self.skeleton.follows.items():
            if active[other]:
                active[number] = 1
        off = self._spoken(parents, roots)
        for number in range(len(active)):
            way: list[int] = []
            at = number
            while at >= 0 and not active[at] and not off[at]:
                way.append(at)
                at = parents[at] if roots[at] != at else _NONE
            kept_as = active if at < 0 or active[at] else off
            for line in way:
                kept_as[line] = 1

    def _spoken(self, parents: list[int], roots: list[int]) -> bytearray:
        """Return messages, and commands with messages below them. They are abandoned with their branch."""
        flags = self.flags
        spoken = bytearray(len(parents))
        above = bytearray(len(parents))
        for number in range(len(parents)):
            if flags[number] & (TALK | _ASIDE) != TALK:
                continue
            spoken[number] = 1
            at = number
            while roots[at] != at and not above[parents[at]]:
                at = parents[at]
                above[at] = 1
                spoken[at] |= bool(flags[at] & COMMAND)
        return spoken
