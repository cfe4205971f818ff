"""References within a schema: where they lead, and which of them lead in a circle.

Nothing is ever fetched: a reference to elsewhere leads nowhere.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote

from dragoman.wire.schemas.keywords import DEFINITIONS, Node, as_map, walk

Pointer = tuple[str, ...]
"""The steps from the root of a schema to one inside it."""


class References:
    """The references of one schema."""

    def __init__(self, root: Node) -> None:
        self._root = root
        self._found: dict[str, tuple[Pointer, Any] | None] = {}
        self._circular: dict[Pointer, int] | None = None
        self._anchors: dict[str, Node] | None = None

    def find(self, reference: Any) -> tuple[Pointer, Any] | None:
        """Where a reference leads, past those that only lead on; None where that is nowhere."""
        if not isinstance(reference, str):
            return None
        if reference not in self._found:
            self._found[reference] = self._follow(reference)
        return self._found[reference]

    def leads_straight(self, reference: str, pointer: Pointer) -> bool:
        """Whether a reference is to that place itself, and not to one that leads on to it."""
        found = self._resolve(reference)
        return found is not None and found[0] == pointer

    def is_circular(self, pointer: Pointer) -> bool:
        """Whether what stands there refers to itself, at once or by way of others."""
        return pointer in self._circles()

    def share_circle(self, one: Pointer, other: Pointer) -> bool:
        """Whether each of the two leads to the other."""
        circles = self._circles()
        return one in circles and circles[one] == circles.get(other)

    def place_of(self, pointer: Pointer) -> str:
        """The path to what stands there, in positions instead of people's own names."""
        path = ""
        here: Any = self._root
        for step in pointer:
            inner: Any = here.get(step) if isinstance(here, dict) else None
            if isinstance(here, list):
                path += f"[{step}]"
                inner = here[int(step)]
            elif path.rpartition(".")[2] in ("properties", "patternProperties", *DEFINITIONS):
                path += f"[{list(here).index(step)}]"
            else:
                path = f"{path}.{step}" if path else step
            here = inner
        return path

    def _follow(self, reference: str) -> tuple[Pointer, Any] | None:
        seen: set[str] = set()
        found = self._resolve(reference)
        while found is not None and _leads_on(found[1]):
            onward = found[1]["$ref"]
            if not isinstance(onward, str) or onward in seen:
                return None
            seen.add(onward)
            found = self._resolve(onward)
        return found

    def _resolve(self, reference: str) -> tuple[Pointer, Any] | None:
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
            elif isinstance(found, list) and step.isdecimal() and int(step) < len(found):
                found = found[int(step)]
            else:
                return None
        return (steps, found) if isinstance(found, (dict, bool)) else None

    def _anchored(self, name: str) -> tuple[Pointer, Any] | None:
        if self._anchors is None:
            self._anchors = {}
            for node in walk(self._root):
                if isinstance(anchor := node.get("$anchor"), str):
                    self._anchors.setdefault(anchor, node)
        found = self._anchors.get(name)
        return None if found is None else (self._pointer_to(found), found)

    def _pointer_to(self, node: Node) -> Pointer:
        for key in DEFINITIONS:
            for name, schema in as_map(self._root.get(key)).items():
                if schema is node:
                    return (key, name)
        return ("$anchor", str(node["$anchor"]))

    def _targets(self, schema: Any) -> list[Pointer]:
        found = [self.find(node["$ref"]) for node in walk(schema) if "$ref" in node]
        return list(dict.fromkeys(each[0] for each in found if each is not None))

    def _circles(self) -> dict[Pointer, int]:
        """All that are part of a circle, and of which: looked for once."""
        if self._circular is None:
            self._circular = _components(self._edges())
        return self._circular

    def _edges(self) -> dict[Pointer, list[Pointer]]:
        """What refers to what."""
        nodes: dict[Pointer, Any] = {}
        edges: dict[Pointer, list[Pointer]] = {}
        pending = [self._root]
        while pending:
            for node in walk(pending.pop()):
                found = self.find(node["$ref"]) if "$ref" in node else None
                if found is not None and found[0] not in nodes:
                    nodes[found[0]] = found[1]
                    edges[found[0]] = self._targets(found[1])
        return edges


def _leads_on(schema: Any) -> bool:
    """Whether a schema is a reference and nothing else."""
    return isinstance(schema, dict) and "$ref" in schema and {"$ref", *DEFINITIONS} >= {*schema}


def _components(edges: dict[Pointer, list[Pointer]]) -> dict[Pointer, int]:
    """The members of circles, each with the number of its own: Tarjan's, without recursion."""
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
