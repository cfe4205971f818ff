"""What a target would not accept in a body, rule by rule.

A rule is a small function named by its number in the catalogue (`w40_results_follow_calls`), or by
what it is about (`shape_…`, `limit_…`) where the catalogue has none. It is given the dialect's view
of a body and yields findings: a path into the body, and what is wrong there, in our own words.

Paths name fields of the dialect and positions, never people's own names.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Generic, Literal, NamedTuple, TypeVar

from dragoman.errors import InvalidInputError
from dragoman.model.jsontext import loads
from dragoman.model.value import Value
from dragoman.wire.target import Target

Severity = Literal["error", "warning"]
Finding = tuple[str, str]
Found = Iterator[Finding]
Object = Mapping[str, Any]
Placed = tuple[str, Object]
"""An object of a body, and its path."""

V = TypeVar("V")
Viewing = Callable[[Object, "Target | None", "str | None", "Mapping[str, str] | None"], V]
"""Makes a dialect's view: given the body, the target (None: anyone), the path and the headers."""


class Violation(Value, frozen=True):
    """One thing in a body that breaks a rule.

    An `error` is known to be refused: it is in the vendor's types, documentation or error texts.
    A `warning` was reported by users.
    """

    rule: str
    severity: Severity
    path: str
    message: str

    def _sizes(self) -> Iterator[str]:
        yield self.rule
        yield self.severity
        yield self.path
        yield self.message


class Rule(NamedTuple, Generic[V]):
    """A rule, how grave it is to break it, and who is known to mind.

    `evidence` says how the rule is known: S the vendor's source or types, D its documentation, E
    its error texts, R reports by users, T recorded traffic. `refused_by` names the providers that
    were seen to refuse a request for it. `flags` are those of `Target` that ask for the
    repair (`turns.pairs_results`).
    """

    find: Callable[[V], Found]
    severity: Severity = "error"
    evidence: str = "S"
    refused_by: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()

    @property
    def number(self) -> str:
        """Its name in the catalogue: `W40`; or what it is about: `shape`."""
        name = self.find.__name__.partition("_")[0]
        return name.upper() if name[1:].isdigit() else name

    def permits_repair(self, target: Target) -> bool:
        """Whether content of the target's own dialect may be repaired for it.

        Only a refusal by this very host, which somebody observed, is reason enough.
        """
        is_observed = not _OBSERVED.isdisjoint(self.evidence)
        return self.severity == "error" and is_observed and target.provider in self.refused_by

    def is_described(self, target: Target, vendor: Target) -> bool:
        """Whether whoever made the target says so: a flag is not as the vendor has it."""
        return self.severity == "error" and any(
            target.flag(name) != vendor.flag(name) for name in self.flags
        )


_OBSERVED = frozenset("ET")


class Rulebook(Generic[V]):
    """The rules of a dialect, and the view of a body that they look at."""

    def __init__(self, rules: Iterable[Rule[V]], view: Viewing[V]) -> None:
        self.rules = tuple(rules)
        self.view = view
        self._hosts = frozenset(host for rule in self.rules for host in rule.refused_by)

    def check(
        self,
        body: object,
        target: Target | None = None,
        path: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> list[Violation]:
        """What the target would refuse, or the vendor's own without one; any JSON gives a list."""
        wire = opened(body)
        if wire is None:
            return [Violation("shape", "error", "$", "the body is not a JSON object")]
        view = self.view(wire, target, path, headers)
        return [
            Violation(rule.number, rule.severity, place, message)
            for rule in self.rules
            for place, message in rule.find(view)
        ]

    def repairs_needed(
        self,
        body: Object,
        target: Target,
        vendor: Target,
        path: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> frozenset[str]:
        """The flags of the target without whose repairs it is known to refuse a body.

        Of a host that no rule names, its owner knows best.
        """
        is_told = target.is_described and target.provider not in self._hosts
        permitted = [
            rule
            for rule in self.rules
            if rule.flags
            and (rule.is_described(target, vendor) if is_told else rule.permits_repair(target))
        ]
        if not permitted:
            return frozenset()
        view = self.view(body, target, path, headers)
        broken = [rule for rule in permitted if next(rule.find(view), None) is not None]
        return frozenset(flag for rule in broken for flag in rule.flags)


def opened(body: object) -> Object | None:
    """The body as an object, from JSON text or as it is; None where it is none."""
    if isinstance(body, (bytes, bytearray, memoryview, str)):
        try:
            body = loads(body)
        except InvalidInputError:
            return None
    return body if isinstance(body, Mapping) else None


def field(wire: Object, key: str) -> Object:
    """The object in a field; an empty one where there is none."""
    value = wire.get(key)
    return value if isinstance(value, Mapping) else {}


def listed(wire: Object, key: str, path: str = "") -> list[Placed]:
    """The objects in a field's list, each with its path."""
    items = wire.get(key)
    place = f"{path}.{key}" if path else key
    if not isinstance(items, (list, tuple)):
        return []
    return [(f"{place}[{i}]", item) for i, item in enumerate(items) if isinstance(item, Mapping)]


def texts_in(value: object) -> set[str]:
    """The texts in a list; none where it is no list."""
    items = value if isinstance(value, (list, tuple)) else ()
    return {item for item in items if isinstance(item, str)}


def is_number(value: object) -> bool:
    """Whether a JSON value is a number; true is none."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


_NOT_BASE64 = re.compile(r"[^A-Za-z0-9+/=_\s-]")


def is_data(url: str) -> bool:
    """Whether an address can be read: one that holds its data has it in base64."""
    if url[:5].lower() != "data:":
        return True
    _, is_base64, data = url.partition(";base64,")
    return bool(is_base64) and _NOT_BASE64.search(data) is None


def word(node: Object, key: str) -> str:
    """The text of a field; empty where it holds something else."""
    found = node.get(key)
    return found if isinstance(found, str) else ""


_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
_MAPS = ("properties", "$defs", "definitions", "patternProperties")
_SINGLE = ("items", "additionalProperties", "not", "if", "then", "else", "contains")


def subschemas(schema: object) -> Iterator[Object]:
    """A schema and all schemas inside it, however deep."""
    pending = [schema]
    while pending:
        node = pending.pop()
        if not isinstance(node, Mapping):
            continue
        yield node
        pending += [node[key] for key in _SINGLE if key in node]
        for key in _LISTS:
            branches = node.get(key)
            pending += branches if isinstance(branches, (list, tuple)) else ()
        for key in _MAPS:
            pending += field(node, key).values()
