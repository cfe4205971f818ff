"""Rules: what a target would refuse in a body.

A rule is a small function named after its number in the catalogue (`w40_results_follow_calls`), or
after its subject (`shape_…`, `limit_…`) if the catalogue has none. It gets the dialect's view of a
body and yields findings: a path into the body, and a message in our own words.

Paths contain only field names of the dialect and positions, never user-chosen names.
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
"""Creates a dialect's view of a body, given body, target (None: any), path and headers."""


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
    """A rule, the severity of breaking it, and the providers known to enforce it.

    `evidence` is how the rule is known: S the vendor's source or types, D its documentation, E its
    error messages, R reports by users, T recorded traffic. `refused_by` names the providers that
    were observed to refuse a request for it. `flags` are the flags of `Target` that trigger the
    repair (`turns.pairs_results`).
    """

    find: Callable[[V], Found]
    severity: Severity = "error"
    evidence: str = "S"
    refused_by: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()

    @property
    def number(self) -> str:
        """Its number in the catalogue, `W40`; or its subject, `shape`."""
        name = self.find.__name__.partition("_")[0]
        return name.upper() if name[1:].isdigit() else name

    @property
    def place(self) -> tuple[int, int]:
        """Where it stands in the list: by number, after those that have none."""
        kind, number = self.number[0], self.number[1:]
        if number.isdigit():
            return _NUMBERED.index(kind), int(number)
        return int(self.number == "limit"), 0

    def permits_repair(self, target: Target) -> bool:
        """Whether content of the target's own dialect may be repaired for it.

        This requires an observed refusal by this very host.
        """
        is_observed = not _OBSERVED.isdisjoint(self.evidence)
        return self.severity == "error" and is_observed and target.provider in self.refused_by

    def is_described(self, target: Target, vendor: Target) -> bool:
        """Whether the target's definition implies the rule: a flag differs from the vendor's."""
        return self.severity == "error" and any(
            target.flag(name) != vendor.flag(name) for name in self.flags
        )


_OBSERVED = frozenset("ET")
_NUMBERED = ("shape", "limit", "I", "W", "C")


class Rules(list[Rule[V]]):
    """The rules of a dialect. A function joins them: `@rule("error", "ST", HOSTS)`."""

    def __call__(
        self,
        severity: Severity = "error",
        evidence: str = "S",
        refused_by: tuple[str, ...] = (),
        *flags: str,
    ) -> Callable[[Callable[[V], Found]], Callable[[V], Found]]:
        """Take a function; the arguments are those of `Rule`."""

        def join(find: Callable[[V], Found]) -> Callable[[V], Found]:
            self.append(Rule(find, severity, evidence, refused_by, flags))
            return find

        return join


class Rulebook(Generic[V]):
    """The rules of a dialect, and the view of a body that they inspect."""

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
        """What the target (default: the vendor's own deployment) would refuse; takes any JSON."""
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
        """The target's flags whose repairs a body needs, because it is known to be refused.

        For a host that no rule names, the target's own flags decide.
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
    """The body as an object, parsed if it is text; None if it is not an object."""
    if isinstance(body, (bytes, bytearray, memoryview, str)):
        try:
            body = loads(body)
        except InvalidInputError:
            return None
    return body if isinstance(body, Mapping) else None


def field(wire: Object, key: str) -> Object:
    """The object in a field; empty if there is none."""
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
    """The strings in a list; empty if it is not a list."""
    items = value if isinstance(value, (list, tuple)) else ()
    return {item for item in items if isinstance(item, str)}


def is_number(value: object) -> bool:
    """Whether a JSON value is a number; a boolean is not."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


_NOT_BASE64 = re.compile(r"[^A-Za-z0-9+/=_\s-]")


def is_data(url: str) -> bool:
    """Whether a URL is valid as media: a `data:` URL must have base64 content."""
    if url[:5].lower() != "data:":
        return True
    _, is_base64, data = url.partition(";base64,")
    return bool(is_base64) and _NOT_BASE64.search(data) is None


def word(node: Object, key: str) -> str:
    """The string in a field; empty if it holds something else."""
    found = node.get(key)
    return found if isinstance(found, str) else ""


_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
_MAPS = ("properties", "$defs", "definitions", "patternProperties")
_SINGLE = ("items", "additionalProperties", "not", "if", "then", "else", "contains")


def subschemas(schema: object) -> Iterator[Object]:
    """A schema and all its subschemas, at any depth."""
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
