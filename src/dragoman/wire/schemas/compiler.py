"""The traversal of a schema: each step rewrites what the target doesn't support."""

from __future__ import annotations

from typing import Any

from dragoman.model.validation.budget import Budget
from dragoman.wire.schemas.compilation import MAX_LEVELS, Draft, Place, Run, described, note
from dragoman.wire.schemas.containers import array_step, object_step, stray_step
from dragoman.wire.schemas.keywords import (
    DEFINITIONS,
    DESCRIBED,
    IGNORED,
    ONE_SCHEMA,
    SCHEMA_LISTS,
    SCHEMA_MAPS,
    Node,
    applies,
    as_list,
    as_map,
    declared,
    only,
    walk,
    weight_of,
    without,
)
from dragoman.wire.schemas.merging import cut, intersected, merge_all, open_references, united
from dragoman.wire.schemas.profiles import Profile
from dragoman.wire.schemas.references import Pointer
from dragoman.wire.schemas.types import is_null, literal_step, type_step
from dragoman.wire.schemas.undo import CUT, IDLE, Plan
from dragoman.wire.schemas.unions import is_object_like, malformed_step, union_step

# --- the root of a schema: must be a plain object (W15, W62)

WRAPPED = "value"
"""The property that holds the value if a non-object root is wrapped in an object."""


def rooted(run: Run) -> tuple[Node, bool]:
    """The root as an object that the target accepts, and whether it was wrapped."""
    profile = run.profile
    if not profile.has_object_root:
        return run.root, False
    draft = Draft(run, dict(run.root), Place(is_root=True))
    open_references(draft)
    if "allOf" in draft.node and not _takes(profile, "allOf"):
        merge_all(draft)
    unions = [key for key in ("anyOf", "oneOf") if key in draft.node and not _takes(profile, key)]
    refused = [
        key
        for key in ("enum", "const", "not")
        if key in draft.node and key in profile.refused_at_root
    ]
    if not is_object_like(run, draft.node) or (profile.wraps_root and (unions or refused)):
        inner = without(run.root, DEFINITIONS)
        return {"type": "object", "properties": {WRAPPED: inner}, "required": [WRAPPED]}, True
    for union in unions:
        _merge_forms(draft, union)
    for word in refused:
        draft.drop(word)
    if draft.node.get("type") != "object":
        draft.node = {"type": "object", **without(draft.node, ("type",))}
    return described(draft.node, draft.notes), False


def _takes(profile: Profile, key: str) -> bool:
    """Whether the root may have a keyword; an unsupported `oneOf` is sent as `anyOf`."""
    known = "anyOf" if key == "oneOf" and not profile.takes(key) else key
    return profile.takes(known) and known not in profile.refused_at_root


def _merge_forms(draft: Draft, key: str) -> None:
    """Merge alternatives into one object that accepts what any of them accepts."""
    forms = [each for each in as_list(draft.node.pop(key)) if not is_null(each)]
    words = f"The value takes one of these forms: {draft.run.text_of(forms)}." if forms else ""
    draft.lose("alternatives are merged into one object", words)
    if forms:
        whole = united(draft.run, [_whole(draft.run, form, 1) for form in forms])
        draft.node = intersected(draft.run, draft.node, whole, _told)


def _whole(run: Run, form: Any, level: int) -> Node:
    """An alternative with its own references, intersections and alternatives resolved."""
    run.spend()
    if level > MAX_LEVELS:  # it is described in words anyway
        return {}
    draft = Draft(run, dict(as_map(form)), Place(level=level))
    open_references(draft, may_keep=False)
    if "allOf" in draft.node:
        merge_all(draft)
    for key in ("anyOf", "oneOf"):
        forms = as_list(draft.node.pop(key, None))
        if forms:
            whole = united(run, [_whole(run, each, level + 1) for each in forms])
            draft.node = intersected(run, draft.node, whole, _told)
    run.inside.subtract(draft.entered)
    return draft.node


def _told(_keyword: str, _value: Any) -> None:
    """Report nothing: the alternatives are described in full, and the loss is already reported."""


# --- keywords that no other step handles: kept, compiled within, or moved to the description

_LOOKAROUND = ("(?=", "(?!", "(?<=", "(?<!")
_CONDITION = ("if", "then", "else")
_TEXTS = ("title", "description")
_HANDLED = frozenset(
    {
        *("properties", "patternProperties", "additionalProperties"),
        *("items", "prefixItems", "anyOf", "oneOf"),
    }
)


def other_keywords_step(draft: Draft) -> None:
    """Remove unsupported keywords, and describe them in the description."""
    for key in DEFINITIONS:
        draft.node.pop(key, None)
    if draft.profile.keywords is None:
        _within(draft)
        return
    types = declared(draft.node)
    _whole_bounds(draft, types)
    for key in list(draft.node):
        if key in _TEXTS and not isinstance(draft.node[key], str):
            draft.lose(f"a {key} that is not a string is left out")
            del draft.node[key]
        elif not draft.profile.takes(key):
            _leave_out(draft, key, types)
        elif not _takes_value(draft, key, draft.node[key]):
            draft.drop(key)


def _within(draft: Draft) -> None:
    """Compile the subschemas in other keywords, for a target that supports all keywords."""
    for key, value in draft.node.items():
        if key in _HANDLED:
            continue
        if key in SCHEMA_LISTS:
            several = enumerate(as_list(value))
            draft.node[key] = [draft.child(each, f"{key}[{at}]")[0] for at, each in several]
        elif key in ONE_SCHEMA and isinstance(value, dict):
            draft.node[key] = draft.child(value, key)[0]
        elif key in SCHEMA_MAPS:
            named = enumerate(as_map(value).items())
            draft.node[key] = {
                name: draft.child(each, f"{key}[{at}]")[0] for at, (name, each) in named
            }


def _takes_value(draft: Draft, key: str, value: Any) -> bool:
    """Whether the target supports this keyword with that value."""
    profile = draft.profile
    if key == "format":
        return profile.formats is None or (isinstance(value, str) and value in profile.formats)
    if key == "pattern":
        return not (profile.refuses_lookaround and _looks_around(value))
    if key == "minItems" and profile.max_min_items is not None:
        return isinstance(value, int) and value <= profile.max_min_items
    return True


def _looks_around(pattern: Any) -> bool:
    return not isinstance(pattern, str) or any(each in pattern for each in _LOOKAROUND)


def _whole_bounds(draft: Draft, types: list[str]) -> None:
    """For integers, convert an exclusive bound to an inclusive one."""
    if types != ["integer"]:
        return
    bounds = (("exclusiveMinimum", "minimum", 1), ("exclusiveMaximum", "maximum", -1))
    for key, plain, step in bounds:
        bound: Any = draft.node.get(key)
        if type(bound) is int and not draft.profile.takes(key) and draft.profile.takes(plain):
            del draft.node[key]
            bound += step
            other = draft.node.get(plain, bound)
            if type(other) in (int, float):
                bound = max(bound, other) if step > 0 else min(bound, other)
            draft.node[plain] = bound


def _leave_out(draft: Draft, key: str, types: list[str]) -> None:
    """Remove a keyword: silently if it has no effect, otherwise with a description."""
    value = draft.node[key]
    if key in DESCRIBED:
        draft.tell(note(key, value))
    elif key == "if":
        rules = only(draft.node, _CONDITION)
        if len(rules) > 1:
            draft.lose(
                "if is moved to the description",
                f"Also, by JSON Schema: {draft.run.text_of(rules)}.",
            )
    elif not (_is_silent(key, types) or _says_nothing(key, value)):
        draft.drop(key)
        return
    del draft.node[key]


def _is_silent(key: str, types: list[str]) -> bool:
    is_told = key in ("then", "else")  # with `if`
    return is_told or key in IGNORED or key.startswith("x-") or not applies(key, types)


def _says_nothing(key: str, value: Any) -> bool:
    if key == "uniqueItems":
        return value is False
    return (value is True or value in ({}, [])) and key != "not"


def check_limits(run: Run, schema: Node) -> None:
    """Report limits of the target that the schema as a whole exceeds."""
    profile, weight = run.profile, weight_of(schema)
    for most, count, what in (
        (profile.max_properties, weight.properties, "properties"),
        (profile.max_optional, weight.optional, "optional properties"),
        (profile.max_unions, weight.unions, "unions"),
    ):
        if most is not None and count > most:
            reason = f"too many {what}: the target allows {most}"
            run.lose("", reason, is_unfaithful=True)


# --- the definitions of a compiled schema: those that are still referenced

_KEY_AND_NAME = 2


class Definitions:
    """The referenced definitions, their new names, and how to convert values back."""

    def __init__(self, run: Run, *, has_root: bool) -> None:
        self._run = run
        self._has_root = has_root
        """Whether the root is still the root, so that `#` refers to it."""
        self._names: dict[Pointer, tuple[str, str]] = {}
        self._plans: dict[Pointer, Plan] = {}
        self._pending: list[Pointer] = []
        self._targets: dict[Pointer, Any] = {}
        self._taken = {*as_map(run.root.get("$defs"))}
        """Names of definitions, old and new."""

    def refer(self, draft: Draft) -> None:
        """Point a reference to its definition's new position."""
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
        """Set the conversion for references to the root."""
        if () in self._plans and self._has_root:
            self._plans[()].same = root

    def compiled(self) -> dict[str, Node]:
        """The definitions by keyword and name, referenced or not, in original order."""
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
        """Keep unreferenced definitions, if the target supports definitions."""
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
            target = without(target, DEFINITIONS)
        self._targets[pointer] = target
        self._names[pointer] = self._new_name(pointer)
        self._taken.add(self._names[pointer][1])
        self._pending.append(pointer)

    def _name(self, pointer: Pointer, reference: str) -> str:
        """The reference to a definition; unchanged if it still resolves there."""
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


# --- compiler


class Compiler:
    """Compiles one schema for one profile."""

    def __init__(self, root: Node, profile: Profile, budget: Budget) -> None:
        self.run = Run(root, profile, budget, self.compile)
        self._root, is_wrapped = rooted(self.run)
        self.wrapped = WRAPPED if is_wrapped else None
        """The property that holds the value, if the root was wrapped in an object."""
        self._definitions = Definitions(self.run, has_root=not is_wrapped)

    def compiled(self) -> tuple[Node, Plan]:
        """The schema for the target, and how to convert values back."""
        schema, plan = self.compile(self._root, Place(is_root=True))
        self._definitions.settle(plan)
        if self.wrapped is not None:
            plan = plan.members.get(self.wrapped, Plan())
        schema |= self._definitions.compiled()
        check_limits(self.run, schema)
        del self.run.child  # it refers to this object, which would stay in memory
        return schema, plan

    def compile(self, schema: Any, place: Place) -> tuple[Any, Plan]:
        """A subschema for the target, and how to convert values back."""
        run = self.run
        if (
            isinstance(schema, dict)
            and run.profile.takes_as_it_is(schema)
            and 0 < place.level <= MAX_LEVELS
        ):
            run.budget.spend()
            return schema, IDLE
        run.spend()
        if isinstance(schema, bool) and run.profile.keywords is None:
            return schema, Plan()
        draft = Draft(run, dict(schema) if isinstance(schema, dict) else {}, place)
        if not isinstance(schema, (dict, bool)):
            draft.lose("an invalid schema is replaced by one that allows anything")
        if schema is False:
            draft.lose("a schema that allows nothing is not supported", "No value fits.")
        if place.level > MAX_LEVELS or _is_too_deep(draft):
            return cut(draft), CUT
        open_references(draft)
        try:
            return (draft.node, CUT) if draft.is_cut else self._finished(draft)
        finally:
            run.inside.subtract(draft.entered)

    def _finished(self, draft: Draft) -> tuple[Any, Plan]:
        profile = draft.profile
        if "allOf" in draft.node and not profile.takes("allOf"):
            merge_all(draft)
        if "$ref" in draft.node:
            self._definitions.refer(draft)
        if "$ref" not in draft.node or profile.reference_siblings is None:
            malformed_step(draft)
            type_step(draft)
            literal_step(draft)
            stray_step(draft)
            if not union_step(draft) or profile.union_siblings is None:
                object_step(draft)
                array_step(draft)
            other_keywords_step(draft)
        return described(draft.node, draft.notes), draft.plan


def _is_too_deep(draft: Draft) -> bool:
    most = draft.profile.max_levels
    is_object = "object" in declared(draft.node) or "properties" in draft.node
    return most is not None and is_object and draft.place.objects >= most
