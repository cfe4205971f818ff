"""The definitions of a projected schema: those that references in it still lead to."""

from __future__ import annotations

from typing import Any

from dragoman.wire.schemas.keywords import DEFINITIONS, Node, as_map, walk
from dragoman.wire.schemas.references import Pointer
from dragoman.wire.schemas.run import Draft, Place, Run
from dragoman.wire.schemas.undoing import Plan

_KEY_AND_NAME = 2


class Definitions:
    """What is referred to, what it is called now, and how it is undone."""

    def __init__(self, run: Run, *, has_root: bool) -> None:
        self._run = run
        self._has_root = has_root
        """Whether the root is still the root, and `#` leads there."""
        self._names: dict[Pointer, tuple[str, str]] = {}
        self._plans: dict[Pointer, Plan] = {}
        self._pending: list[Pointer] = []
        self._targets: dict[Pointer, Any] = {}
        self._taken = {*as_map(run.root.get("$defs"))}
        """The names that definitions have, or had."""

    def refer(self, draft: Draft) -> None:
        """Point a reference to where its definition will stand."""
        found = self._run.references.find(draft.node["$ref"])
        if found is None:
            return
        pointer, target = found
        if pointer not in self._plans:
            self._plans[pointer] = Plan()
            if pointer or not self._has_root:
                self._add(pointer, target)
        draft.plan.same = self._plans[pointer]
        for key in DEFINITIONS:
            draft.node.pop(key, None)
        draft.node["$ref"] = self._name(pointer, draft.node["$ref"])

    def settle(self, root: Plan) -> None:
        """Tell references to the root how that is undone."""
        if () in self._plans and self._has_root:
            self._plans[()].same = root

    def compiled(self) -> dict[str, Node]:
        """By keyword and name: what is referred to, and what never was, in the order it had."""
        self._add_unused()
        made: dict[Pointer, Any] = {}
        while self._pending:
            pointer = self._pending.pop()
            place = Place(self._run.references.place_of(pointer) or "$", level=1, home=pointer)
            made[pointer], plan = self._run.child(self._targets[pointer], place)
            if pointer in self._plans:
                self._plans[pointer].same = plan
        definitions: dict[str, Node] = {}
        order = {pointer: at for at, pointer in enumerate(self._own())}
        for pointer in sorted(made, key=lambda each: (order.get(each, len(order)), each)):
            key, name = self._names[pointer]
            definitions.setdefault(key, {})[name] = made[pointer]
        return definitions

    def _own(self) -> list[Pointer]:
        root = self._run.root
        return [(key, name) for key in DEFINITIONS for name in as_map(root.get(key))]

    def _add_unused(self) -> None:
        """What is defined and never referred to stays, where there are definitions at all."""
        run = self._run
        if not run.profile.takes("$ref"):
            return
        found = [run.references.find(node["$ref"]) for node in walk(run.root) if "$ref" in node]
        referred = {each[0] for each in found if each is not None}
        for pointer in self._own():
            if pointer not in referred and pointer not in self._targets:
                self._add(pointer, run.root[pointer[0]][pointer[1]])

    def _add(self, pointer: Pointer, target: Any) -> None:
        if not pointer:
            target = {key: value for key, value in target.items() if key not in DEFINITIONS}
        self._targets[pointer] = target
        self._names[pointer] = self._new_name(pointer)
        self._taken.add(self._names[pointer][1])
        self._pending.append(pointer)

    def _name(self, pointer: Pointer, reference: str) -> str:
        """The reference to a definition; as it was, where that still leads there."""
        if pointer not in self._names:
            return "#"
        key, name = self._names[pointer]
        is_plain = reference.startswith("#/") and (key, name) == pointer
        if is_plain and self._run.references.leads_straight(reference, pointer):
            return reference
        plain = name.replace("~", "~0").replace("/", "~1").replace("%", "%25")
        return f"#/{key}/{plain}"

    def _new_name(self, pointer: Pointer) -> tuple[str, str]:
        is_definition = len(pointer) == _KEY_AND_NAME and pointer[0] in DEFINITIONS
        if is_definition and self._run.profile.takes(pointer[0]):
            return pointer[0], pointer[1]
        name = pointer[-1] if is_definition else f"part{len(self._names) + 1}"
        while name in self._taken:
            self._run.budget.spend()
            name += "_"
        return "$defs", name
