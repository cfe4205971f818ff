"""References within a schema: what they resolve to, and which are circular.

Nothing is ever fetched: external references are unresolvable.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

from dragoman.model.validation.budget import Budget
from dragoman.model.validation.words import is_index
from dragoman.wire.schemas.keywords import DEFINITIONS, Node, as_map, walk

Pointer = tuple[str, ...]
"""The steps from the root of a schema to a subschema."""


class References:
    """The references of one schema."""

    def __init__(self, root: Node, budget: Budget) -> None:
        self._root = root
        self._budget = budget
        self._found: dict[str, tuple[Pointer, Any] | None] = {}
        self._circular: dict[Pointer, int] | None = None
        self._anchors: dict[str, tuple[Pointer, Node]] | None = None
        self._positions: dict[int, dict[str, int]] = {}

    def find(self, reference: Any) -> tuple[Pointer, Any] | None:
        """What a reference resolves to, following pure references; None if unresolvable."""
        if not isinstance(reference, str):
            return None
        if reference not in self._found:
            self._follow(reference)
        return self._found[reference]

    def leads_straight(self, reference: str, pointer: Pointer) -> bool:
        """Whether a reference points to that position directly, not by way of another reference."""
        found = self._resolve(reference)
        return found is not None and found[0] == pointer

    def is_circular(self, pointer: Pointer) -> bool:
        """Whether the schema there refers to itself, directly or indirectly."""
        return pointer in self._circles()

    def share_circle(self, one: Pointer, other: Pointer) -> bool:
        """Whether the two refer to each other, directly or indirectly."""
        circles = self._circles()
        return one in circles and circles[one] == circles.get(other)

    def place_of(self, pointer: Pointer) -> str:
        """The path to a position, with indices instead of user-chosen names."""
        path = ""
        here: Any = self._root
        for step in pointer:
            inner: Any = here.get(step) if isinstance(here, dict) else None
            if isinstance(here, list):
                path += f"[{step}]"
                inner = here[int(step)]
            elif path.rpartition(".")[2] in ("properties", "patternProperties", *DEFINITIONS):
                path += f"[{self._position(here, step)}]"
            else:
                path = f"{path}.{step}" if path else step
            here = inner
        return path

    def _position(self, names: Node, name: str) -> int:
        known = self._positions.get(id(names))
        if known is None:  # keyed by id: it is part of the root, which outlives this
            known = self._positions[id(names)] = {each: at for at, each in enumerate(names)}
        return known[name]

    def _follow(self, reference: str) -> None:
        """Resolve a reference, and with it all others on the way."""
        seen = {reference: None}
        found = self._resolve(reference)
        while found is not None and _leads_on(found[1]):
            onward = found[1]["$ref"]
            if not isinstance(onward, str) or onward in seen:
                found = None
                break
            if onward in self._found:
                found = self._found[onward]
                break
            seen[onward] = None
            found = self._resolve(onward)
        self._found.update(dict.fromkeys(seen, found))

    def _resolve(self, reference: str) -> tuple[Pointer, Any] | None:
        self._budget.spend_on(64 + 16 * len(reference))
        own = self._root.get("$id")
        if isinstance(own, str) and own and reference.startswith(own):
            reference = reference[len(own) :] or "#"
        if not reference.startswith("#"):
            return None
        if reference != "#" and not reference.startswith("#/"):
            return self._anchored(reference[1:])
        steps = tuple(
            step.replace("~1", "/").replace("~0", "~") for step in unquote(reference).split("/")[1:]
        )
        found: Any = self._root
        for step in steps:
            if isinstance(found, dict) and step in found:
                found = found[step]
            elif isinstance(found, list) and is_index(step) and int(step) < len(found):
                found = found[int(step)]
            else:
                return None
        return (steps, found) if isinstance(found, (dict, bool)) else None

    def _anchored(self, name: str) -> tuple[Pointer, Any] | None:
        if self._anchors is None:
            definitions = {
                id(schema): (key, name)
                for key in reversed(DEFINITIONS)
                for name, schema in as_map(self._root.get(key)).items()
            }
            self._anchors = {}
            for node in self._walk(self._root):
                if isinstance(anchor := node.get("$anchor"), str):
                    pointer = definitions.get(id(node), ("$anchor", anchor))
                    self._anchors.setdefault(anchor, (pointer, node))
        return self._anchors.get(name)

    def _walk(self, schema: Any) -> Iterator[Node]:
        for node in walk(schema):
            self._budget.spend()
            yield node

    def _targets(self, schema: Any) -> dict[Pointer, Any]:
        """Everything that a schema refers to."""
        found = [self.find(node["$ref"]) for node in self._walk(schema) if "$ref" in node]
        return dict(each for each in found if each is not None)

    def _circles(self) -> dict[Pointer, int]:
        """All members of circles, with the number of their circle; computed once."""
        if self._circular is None:
            self._circular = _components(self._edges())
        return self._circular

    def _edges(self) -> dict[Pointer, list[Pointer]]:
        """What refers to what, including schemas that are only reachable by reference."""
        edges: dict[Pointer, list[Pointer]] = {}
        pending = [self._targets(self._root)]
        while pending:
            for pointer, target in pending.pop().items():
                if pointer not in edges:
                    found = self._targets(target)
                    edges[pointer] = list(found)
                    pending.append(found)
        return edges


def _leads_on(schema: Any) -> bool:
    """Whether a schema is only a reference."""
    return isinstance(schema, dict) and "$ref" in schema and {"$ref", *DEFINITIONS} >= {*schema}


def _components(edges: dict[Pointer, list[Pointer]]) -> dict[Pointer, int]:
    """The members of circles, with the number of their circle: Tarjan's algorithm, iterative."""
    circular: dict[Pointer, int] = {}
    index: dict[Pointer, int] = {}
    low: dict[Pointer, int] = {}
    stack: list[Pointer] = []
    for start, targets in edges.items():
        work = [] if start in index else [(start, iter(targets))]
        while work:
            node, onward = work[-1]
            if node not in index:
                index[node] = low[node] = len(index)
                stack.append(node)
            following = next((each for each in onward if each not in index), None)
            if following is not None:
                work.append((following, iter(edges[following])))
                continue
            work.pop()
            low[node] = min([low[node], *(low[each] for each in edges[node] if each in low)])
            if low[node] == index[node]:
                _close(node, stack, low, circular, edges)
    return circular


def _close(
    node: Pointer,
    stack: list[Pointer],
    low: dict[Pointer, int],
    circular: dict[Pointer, int],
    edges: dict[Pointer, list[Pointer]],
) -> None:
    """Take a finished component off the stack."""
    members = [stack.pop()]
    while members[-1] != node:
        members.append(stack.pop())
    if len(members) > 1 or node in edges[node]:
        circular.update(dict.fromkeys(members, low[node]))
    for member in members:
        del low[member]  # it is no longer on the stack
