"""Which lines are on the branch that Claude Code itself shows, and which were left behind.

Lines form trees. A tree begins wherever a line has no parent in the file: at the
start, after a compaction, after a resume that points into another file. Each
tree is the next stretch of the same conversation, and of each only the way to
its last leaf was kept; what lies beside it was rewound, edited or retried.
Parallel tool calls fork the tree without anybody having left anything behind, so
all lines of a response and all results of its calls belong to the way.
"""

from msgspec import Struct, field

__all__ = ["CAVEAT", "COMMAND", "META", "SIDE", "TALK", "Skeleton", "Tree"]

TALK = 1  # a user or assistant line
META = 2  # injected, or another agent's: never what a branch ends in
CAVEAT = 4  # announces local command output
COMMAND = 8  # consists of command wrapping
SIDE = 16  # a subagent's line

_ASIDE = META | CAVEAT | COMMAND  # what hangs on a branch without being said on it

_NONE = -1
_LATER = -2  # the parent is named but not yet read


class Skeleton(Struct, array_like=True):
    """What must be remembered of a transcript to go on reading it: a few dozen bytes a line."""

    ids: list[str] = field(default_factory=list)
    parents: list[int] = field(default_factory=list)
    flags: list[int] = field(default_factory=list)
    responses: list[int] = field(default_factory=list)  # which response a line is part of, or -1
    message_counts: list[int] = field(default_factory=list)  # how many messages it gave
    unresolved_parents: dict[int, str] = field(
        default_factory=dict
    )  # parents that were named before they were read
    response_numbers: dict[str, int] = field(default_factory=dict)
    follows: dict[int, int] = field(default_factory=dict)  # a line that is active whenever another is
    retracted_ids: set[str] = field(default_factory=set)  # retracted or superseded by name
    remaining_counts: dict[int, int] = field(
        default_factory=dict
    )  # written again with less in it: how many are left


class Tree:
    """The lines of a transcript by parent."""

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
        """The number of a line by its id, or -1."""
        return self._index.get(id_, _NONE) if id_ is not None else _NONE

    def add(self, id_: str, parent: str | None, flags: int, response: str | None) -> int:
        """Take a line; a known id takes the place of what it named before."""
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
        """Note how many messages a line gave, and the line of the call it answers besides."""
        if count < self.message_counts[number]:
            self.remaining_counts[number] = count
            return
        self.message_counts[number] = count
        if self.remaining_counts:
            self.remaining_counts.pop(number, None)
        if count and call_node >= 0:
            self.skeleton.follows[number] = call_node

    def tie(self, id_: str, number: int) -> None:
        """Keep a line active whenever another is, such as one that repeats it and is not told."""
        follower = self.find(id_)
        if follower >= 0:
            self.skeleton.follows[follower] = number

    def abandoned(self) -> tuple[str, ...]:
        """The ids of the messages that the tool no longer shows."""
        return self._left(self._active() if self._forks() else None)

    def retracted(self) -> tuple[str, ...]:
        """The ids of messages that were taken back by name, or left out when their line was written again."""
        return self._left(None)

    def _forks(self) -> bool:
        """Whether a line may have been left: where no two hang on one, every tree is a single way."""
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
        """Parents by number: late ones filled in, circles cut before their first line."""
        parents = self.parents.copy()
        for number, parent in self.unresolved_parents.items():
            if parents[number] == _LATER:
                parents[number] = self._index.get(parent, _NONE)
        walk = [0] * len(parents)  # which walk came by
        for number in range(len(parents)):
            at = number
            while at >= 0 and not walk[at]:
                walk[at] = number + 1
                at = parents[at]
            if at >= 0 and walk[at] == number + 1:  # back on its own way: a circle
                first, here = at, parents[at]
                while here != at:
                    first, here = min(first, here), parents[here]
                parents[first] = _NONE
        self._line_up(parents)
        return parents

    def _line_up(self, parents: list[int]) -> None:
        """Hang each command below a caveat on what came before it there: they are a sequence, not a fork."""
        flags = self.flags
        caveats: dict[int, int] = {}  # the caveat that a line lies below
        last: dict[int, int] = {}  # what was last said below a caveat
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
        """The line each line's tree begins with."""
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
        """For each tree in which something was said, the last of it that one of its ways ends in."""
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
        """For each line the nearest one, itself or above it in its tree, that somebody said."""
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
        """Take in what forks beside the way without having been left: parallel calls, notices, injections."""
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
        """Lines that somebody said, and commands that were talked about: these are left with their branch."""
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
