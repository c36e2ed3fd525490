"""Find the lines on the branch that Claude Code shows.

Lines form trees. The root of a tree is a line without a parent in the file: the first line, the line after a
compaction, or the line after a resume that points to another file. Each tree continues the same conversation.
Only the path to the last leaf of a tree is active; other branches were rewound, edited or retried. Parallel
tool calls fork the tree, but all of them are active. Therefore the path includes all lines of a response and
all results of its calls.
"""

from msgspec import Struct, field

# Flags of a line.
DIALOG = 1  # a user or assistant line
META = 2  # injected, or from another agent; never the end of a branch
CAVEAT = 4  # announces output of a local command
COMMAND = 8  # a command or its output, not a prompt
SIDECHAIN = 16  # from a subagent
COMMAND_INPUT = 32  # a command, not its output

_NOT_CONVERSATION = META | CAVEAT | COMMAND  # attached to a branch, but not part of the conversation

_NONE = -1  # no line
_UNRESOLVED = -2  # the parent is not read yet


class TreeState(Struct, array_like=True):
    """Data of a tree, stored in the checkpoint: a few dozen bytes per line. Lists are indexed by line."""

    ids: list[str] = field(default_factory=list)
    parents: list[int] = field(default_factory=list)
    flags: list[int] = field(default_factory=list)
    responses: list[int] = field(default_factory=list)  # index of the response, or -1
    message_counts: list[int] = field(default_factory=list)
    unresolved_parents: dict[int, str] = field(default_factory=dict)  # referenced before they were read
    response_indexes: dict[str, int] = field(default_factory=dict)
    follows: dict[int, int] = field(default_factory=dict)  # a line, and the line that activates it
    retracted_ids: set[str] = field(default_factory=set)  # of lines that were retracted or superseded
    # Message counts of lines that were rewritten with fewer messages.
    remaining_counts: dict[int, int] = field(default_factory=dict)


class Tree:
    """Trees of the lines of a transcript. Lines are identified by their index."""

    def __init__(self, state: TreeState | None = None) -> None:
        saved = self.state = state or TreeState()
        self.ids, self.parents, self.flags = saved.ids, saved.parents, saved.flags
        self.responses, self.message_counts, self.unresolved_parents = (
            saved.responses,
            saved.message_counts,
            saved.unresolved_parents,
        )
        self.response_indexes, self.retracted_ids, self.remaining_counts = (
            saved.response_indexes,
            saved.retracted_ids,
            saved.remaining_counts,
        )
        self._index_by_id = {id_: index for index, id_ in enumerate(saved.ids)}

    def find(self, id_: str | None) -> int:
        """Return the index of a line, or -1."""
        return self._index_by_id.get(id_, _NONE) if id_ is not None else _NONE

    def add(self, id_: str, parent: str | None, flags: int, response: str | None) -> int:
        """Add a line and return its index. A line with a known id replaces the earlier line."""
        index_by_id = self._index_by_id
        index = index_by_id.get(id_)
        parent_index = _NONE if parent is None or parent == id_ else index_by_id.get(parent, _UNRESOLVED)
        response_index = _NONE
        if response is not None:
            response_index = self.response_indexes.setdefault(response, len(self.response_indexes))
        if index is None:
            index = index_by_id[id_] = len(self.ids)
            self.ids.append(id_)
            self.parents.append(parent_index)
            self.flags.append(flags)
            self.responses.append(response_index)
            self.message_counts.append(0)
        else:
            self.parents[index] = parent_index
            self.flags[index] = flags
            self.responses[index] = response_index
        if parent_index == _UNRESOLVED and parent is not None:
            self.unresolved_parents[index] = parent
        return index

    def set_message_count(self, index: int, count: int, *, call_node: int = _NONE) -> None:
        """Set the number of messages of a line. A tool result is active if the line of its call is."""
        if count < self.message_counts[index]:
            self.remaining_counts[index] = count
            return
        self.message_counts[index] = count
        if self.remaining_counts:
            self.remaining_counts.pop(index, None)
        if count and call_node >= 0:
            self.state.follows[index] = call_node

    def append(self, index: int) -> None:
        """Move a line that was written late below the message before it in the file.

        2.1.77 writes the progress of hooks and subagents after the messages that followed it, below an old
        line. The next message is below the progress. That is not a rewind.
        """
        last = index - 1
        if last >= 0 and not self.flags[last] & DIALOG:
            last = self.parents[last]
        if last >= 0 and self.flags[last] & (DIALOG | SIDECHAIN) == DIALOG and self.parents[index] < last:
            self.parents[index] = last
            self.unresolved_parents.pop(index, None)

    def follow(self, id_: str, index: int) -> None:
        """Make a line active whenever another one is, for example a repeated line without messages."""
        follower = self.find(id_)
        if follower >= 0:
            self.state.follows[follower] = index

    def inactive_message_ids(self) -> tuple[str, ...]:
        """Return the ids of the messages that the tool no longer shows."""
        return self._hidden_message_ids(self._find_active() if self._has_forks() else None)

    def removed_message_ids(self) -> tuple[str, ...]:
        """Return the ids of messages that were retracted by id, or removed when their line was rewritten."""
        return self._hidden_message_ids(None)

    def last_id_without_message(self) -> str | None:
        """Return the id of the last line if it has no message, as the result of a call; else None."""
        return self.ids[-1] if self.ids and not self.message_counts[-1] else None

    def _has_forks(self) -> bool:
        """Return whether any line has two children. Without forks every line is active."""
        if any(parent in self._index_by_id for parent in self.unresolved_parents.values()):
            return True
        child_count = len(self.parents) - self.parents.count(_NONE) - self.parents.count(_UNRESOLVED)
        return len(set(self.parents) - {_NONE, _UNRESOLVED}) < child_count

    def _hidden_message_ids(self, active: bytearray | None) -> tuple[str, ...]:
        """Return removed messages and, if ``active`` is given, those of inactive lines."""
        hidden: list[str] = []
        remaining = self.remaining_counts
        if active is None and not remaining and not self.retracted_ids:
            return ()
        for index, count in enumerate(self.message_counts):
            if not count:
                continue
            id_ = self.ids[index]
            is_inactive = active is not None and not active[index] and not self.flags[index] & SIDECHAIN
            first = 0 if is_inactive or id_ in self.retracted_ids else remaining.get(index, count)
            hidden += [f"{id_}.{position}" if position else id_ for position in range(first, count)]
        return tuple(hidden)

    def _find_active(self) -> bytearray:
        parents = self._resolve_parents()
        roots = self._find_roots(parents)
        active = bytearray(len(parents))
        for root, leaf in self._find_last_leaves(parents, roots).items():
            line = leaf
            while not active[line]:
                active[line] = 1
                if line == root:
                    break
                line = parents[line]
        self._activate_side_branches(active, parents, roots)
        return active

    def _resolve_parents(self) -> list[int]:
        """Return the parents with late references resolved and cycles removed."""
        parents = self.parents.copy()
        for index, parent in self.unresolved_parents.items():
            if parents[index] == _UNRESOLVED:
                parents[index] = self._index_by_id.get(parent, _NONE)
        visited_by = [0] * len(parents)  # the walk that visited a line first; 0 if none did
        for index in range(len(parents)):
            line = index
            while line >= 0 and not visited_by[line]:
                visited_by[line] = index + 1
                line = parents[line]
            if line >= 0 and visited_by[line] == index + 1:  # a cycle
                first, other = line, parents[line]
                while other != line:
                    first, other = min(first, other), parents[other]
                parents[first] = _NONE
        self._move_caveats(parents)
        self._chain_commands(parents)
        return parents

    def _move_caveats(self, parents: list[int]) -> None:
        """Move a command below the answer of the turn in which it ran.

        2.1.105 links such a command to the prompt, beside the answer. After a rewind it is beside a prompt.
        """
        caveats = [index for index, flags in enumerate(self.flags) if flags & CAVEAT and parents[index] >= 0]
        linked = {parents[index] for index in caveats}
        if not caveats or sum(parent in linked for parent in parents) == len(linked):
            return
        children: dict[int, list[int]] = {}
        for index, parent in enumerate(parents):
            children.setdefault(parent, []).append(index)
        for caveat in caveats:
            for sibling in reversed(children[parents[caveat]]):
                if sibling < caveat and self._is_answer(sibling, children):
                    parents[caveat] = _last_leaf(sibling, children)
                    break

    def _is_answer(self, line: int, children: dict[int, list[int]]) -> bool:
        """Return whether a branch starts with a response, after lines that are no messages."""
        while not self.flags[line] & DIALOG and line in children:
            line = children[line][0]
        return self.responses[line] >= 0

    def _chain_commands(self, parents: list[int]) -> None:
        """Chain the commands below a caveat one after another: they are a sequence, not a fork."""
        flags = self.flags
        caveats: dict[int, int] = {}  # the nearest caveat above a line
        last_messages: dict[int, int] = {}  # below a caveat
        for index, parent in enumerate(parents):
            if parent < 0:
                continue
            caveat = parent if flags[parent] & CAVEAT else caveats.get(parent, _NONE)
            if caveat < 0:
                continue
            if parent == caveat and flags[index] & COMMAND:
                parents[index] = last_messages.get(caveat, caveat)
            caveats[index] = caveat
            if flags[index] & DIALOG:
                last_messages[caveat] = index

    def _find_roots(self, parents: list[int]) -> list[int]:
        """Return the root of each line."""
        flags = self.flags
        roots = [_NONE] * len(parents)
        for index in range(len(parents)):
            path: list[int] = []
            line = index
            while roots[line] == _NONE:
                parent = parents[line]
                path.append(line)
                if parent < 0 or (flags[parent] & SIDECHAIN) != (flags[line] & SIDECHAIN):
                    roots[line] = line
                    break
                line = parent
            root = roots[line]
            for visited in path:
                roots[visited] = root
        return roots

    def _find_last_leaves(self, parents: list[int], roots: list[int]) -> dict[int, int]:
        """Return the last message at the end of a branch, for each tree with messages."""
        nearest = self._find_nearest_messages(parents, roots)
        has_child = bytearray(len(parents))
        for index, parent in enumerate(parents):
            if roots[index] != index:
                has_child[parent] = 1
        leaves: dict[int, int] = {}
        for index, root in enumerate(roots):
            if has_child[index] or self.flags[index] & SIDECHAIN:
                continue
            if nearest[index] > leaves.get(root, _NONE):
                leaves[root] = nearest[index]
        return leaves

    def _find_nearest_messages(self, parents: list[int], roots: list[int]) -> list[int]:
        """Return the nearest message for each line: the line itself or one of its ancestors."""
        nearest = [_UNRESOLVED] * len(parents)
        for index in range(len(parents)):
            path: list[int] = []
            line = index
            while nearest[line] == _UNRESOLVED:
                path.append(line)
                if self.flags[line] & (DIALOG | _NOT_CONVERSATION) == DIALOG:
                    nearest[line] = line
                elif roots[line] == line:
                    nearest[line] = _NONE
                else:
                    line = parents[line]
            found = nearest[line]
            for visited in path:
                nearest[visited] = found
        return nearest

    def _activate_side_branches(self, active: bytearray, parents: list[int], roots: list[int]) -> None:
        """Activate lines that fork from the path and are not abandoned: parallel calls, notices."""
        responses = self.responses
        active_responses = {responses[index] for index in range(len(active)) if active[index]}
        active_responses.discard(_NONE)
        for index, response in enumerate(responses):
            if response in active_responses:
                active[index] = 1
        for index, other in self.state.follows.items():
            if active[other]:
                active[index] = 1
        abandoned = self._find_conversation_lines(parents, roots)
        for index in range(len(active)):
            path: list[int] = []
            line = index
            while line >= 0 and not active[line] and not abandoned[line]:
                path.append(line)
                line = parents[line] if roots[line] != line else _NONE
            target = active if line < 0 or active[line] else abandoned
            for visited in path:
                target[visited] = 1

    def _find_conversation_lines(self, parents: list[int], roots: list[int]) -> bytearray:
        """Return messages, and commands with messages below them. They are abandoned with their branch."""
        flags = self.flags
        found = bytearray(len(parents))
        has_message_below = bytearray(len(parents))
        for index in range(len(parents)):
            if flags[index] & (DIALOG | _NOT_CONVERSATION) != DIALOG:
                continue
            found[index] = 1
            line = index
            while roots[line] != line and not has_message_below[parents[line]]:
                line = parents[line]
                has_message_below[line] = 1
                found[line] |= bool(flags[line] & COMMAND)
        return found


def _last_leaf(line: int, children: dict[int, list[int]]) -> int:
    while line in children:
        line = children[line][-1]
    return line
