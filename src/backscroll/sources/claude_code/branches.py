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

_NONE = -1
_LATER = -2  # the parent is named but not yet read


class Skeleton(Struct, array_like=True):
    """What must be remembered of a transcript to go on reading it: a few dozen bytes a line."""

    ids: list[str] = field(default_factory=list)
    parents: list[int] = field(default_factory=list)
    flags: list[int] = field(default_factory=list)
    responses: list[int] = field(default_factory=list)  # which response a line is part of, or -1
    told: list[int] = field(default_factory=list)  # how many messages it gave
    later: dict[int, str] = field(default_factory=dict)  # parents that were named before they were read
    response_numbers: dict[str, int] = field(default_factory=dict)
    answers: dict[int, int] = field(
        default_factory=dict
    )  # a result's line that gave messages: its call's line
    dead: set[str] = field(default_factory=set)  # retracted or superseded by name


class Tree:
    """The lines of a transcript by parent."""

    def __init__(self, skeleton: Skeleton | None = None) -> None:
        kept = self.skeleton = skeleton or Skeleton()
        self.ids, self.parents, self.flags = kept.ids, kept.parents, kept.flags
        self.responses, self.told, self.later = kept.responses, kept.told, kept.later
        self.response_numbers, self.answers, self.dead = kept.response_numbers, kept.answers, kept.dead
        self._index = {id_: number for number, id_ in enumerate(kept.ids)}

    def find(self, id_: str | None) -> int:
        """The number of a line by its id, or -1."""
        return self._index.get(id_, _NONE) if id_ is not None else _NONE

    def add(self, id_: str, parent: str | None, flags: int, response: str | None) -> int:
        """Take a line; a known id takes the place of what it named before."""
        known = self._index.get(id_)
        above = _NONE if parent is None or parent == id_ else self._index.get(parent, _LATER)
        number = len(self.ids) if known is None else known
        if above == _LATER and parent is not None:
            self.later[number] = parent
        owner = _NONE
        if response is not None:
            owner = self.response_numbers.setdefault(response, len(self.response_numbers))
        if known is None:
            self._index[id_] = number
            self.ids.append(id_)
            self.parents.append(above)
            self.flags.append(flags)
            self.responses.append(owner)
            self.told.append(0)
        else:
            self.parents[number] = above
            self.flags[number] = flags
            self.responses[number] = owner
        return number

    def abandoned(self) -> tuple[str, ...]:
        """The ids of the messages that the tool no longer shows."""
        active = self._active()
        ids: list[str] = []
        for number, told in enumerate(self.told):
            if not told or self.flags[number] & SIDE:
                continue
            id_ = self.ids[number]
            if not active[number] or id_ in self.dead:
                ids.append(id_)
                ids += [f"{id_}.{later}" for later in range(1, told)]
        return tuple(ids)

    def _active(self) -> bytearray:
        parents = self._resolved()
        roots = self._roots(parents)
        active = bytearray(len(parents))
        for root, leaf in self._last_leaves(parents, roots).items():
            at = leaf
            while not active[at]:
                active[at] = 1
                if at == root or parents[at] < 0:
                    break
                at = parents[at]
        self._widen(active, parents)
        return active

    def _resolved(self) -> list[int]:
        """Parents by number, with those that came after their children filled in."""
        parents = self.parents.copy()
        for number, parent in self.later.items():
            if parents[number] == _LATER:
                parents[number] = self._index.get(parent, _NONE)
        return parents

    def _roots(self, parents: list[int]) -> list[int]:
        """The line each line's tree begins with. A cycle begins with its first line."""
        flags = self.flags
        roots = [_NONE] * len(parents)
        for number in range(len(parents)):
            way: list[int] = []
            at = number
            while roots[at] == _NONE:
                above = parents[at]
                way.append(at)
                if (
                    above < 0
                    or (flags[above] & SIDE) != (flags[at] & SIDE)
                    or (flags[above] & CAVEAT and flags[at] & COMMAND)
                ):
                    roots[at] = at
                    break
                roots[at] = number  # provisional: met again, it is a cycle
                at = above
            root = roots[at]
            for line in way:
                roots[line] = root
        return roots

    def _last_leaves(self, parents: list[int], roots: list[int]) -> dict[int, int]:
        flags = self.flags
        has_child = bytearray(len(parents))
        for number, above in enumerate(parents):
            if above >= 0 and roots[number] == roots[above]:
                has_child[above] = 1
        best: dict[int, tuple[bool, int]] = {}
        for number in range(len(parents)):
            if has_child[number] or flags[number] & SIDE:
                continue
            leaf = number
            steps = 0
            while not flags[leaf] & TALK and parents[leaf] >= 0 and roots[parents[leaf]] == roots[number]:
                leaf = parents[leaf]
                steps += 1
                if steps > len(parents):
                    break
            if not flags[leaf] & TALK:
                continue
            rank = (not flags[leaf] & META, leaf)
            if rank > best.get(roots[number], (False, _NONE)):
                best[roots[number]] = rank
        return {root: leaf for root, (_, leaf) in best.items()}

    def _widen(self, active: bytearray, parents: list[int]) -> None:
        """Take in what forks beside the way without having been left: parallel calls, notices, injections."""
        flags, responses = self.flags, self.responses
        kept = {responses[number] for number in range(len(active)) if active[number]}
        kept.discard(_NONE)
        for number, response in enumerate(responses):
            if response in kept:
                active[number] = 1
        for number, call in self.answers.items():
            if active[call]:
                active[number] = 1
        for number, above in enumerate(parents):
            if not active[number] and (not flags[number] & TALK or flags[number] & META):
                active[number] = above < 0 or active[above]
