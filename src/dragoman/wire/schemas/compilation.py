"""The state of one compilation: the target's profile, results so far, and the work budget."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from dragoman.model.jsontext import dumps
from dragoman.model.validation.budget import Budget
from dragoman.model.validation.problems import Validation
from dragoman.model.validation.words import is_number
from dragoman.wire.losses import Loss
from dragoman.wire.schemas.keywords import TYPES, Node, as_list, as_map
from dragoman.wire.schemas.profiles import Profile
from dragoman.wire.schemas.references import Pointer, References
from dragoman.wire.schemas.undo import Plan

# --- unsupported keywords as sentences, which go into the description

_MAX_LISTED = 100
_MAX_NOTE = 2000


def text_of(value: Any) -> str:
    """A value as JSON text."""
    return dumps(value).decode()


def note(keyword: str, value: Any) -> str:
    """The sentence for a keyword; empty if there is nothing to say."""
    if keyword in _WORDS:
        return _WORDS[keyword](value)
    text = text_of(value)
    return f"Also, by JSON Schema: {keyword} = {text}." if len(text) <= _MAX_NOTE else ""


def described(node: Node, notes: list[str]) -> Node:
    """The node with notes appended to its description."""
    text = node.get("description")
    said = text if isinstance(text, str) else ""
    new = [each for each in dict.fromkeys(notes) if each not in said]
    if not new:
        return node
    lines = [said] if said else []
    return {**node, "description": "\n".join([*lines, " ".join(new)])}


def listed(values: list[Any]) -> str:
    """Values as a comma-separated list, limited to the first hundred."""
    texts = [text_of(value) for value in values[:_MAX_LISTED]]
    rest = len(values) - _MAX_LISTED
    return ", ".join(texts) + (f" and {rest} more" if rest > 0 else "")


def _number(words: str) -> Callable[[Any], str]:
    return lambda value: f"{words.format(text_of(value))}." if is_number(value) else ""


def _quoted(words: str) -> Callable[[Any], str]:
    return lambda value: f"{words} {value}." if isinstance(value, str) else ""


def _names(value: Any) -> str:
    return ", ".join(f"`{name}`" for name in as_list(value))


def _dependent(value: Any) -> str:
    needs = [f"`{name}` needs {_names(others)}" for name, others in as_map(value).items()]
    return "; ".join(needs) + "." if needs else ""


def _others(value: Any) -> str:
    if value is False:
        return "No other properties are allowed."
    if isinstance(value, dict) and value:
        return f"Other properties are allowed if they fit {text_of(value)}."
    return "Other properties are allowed."


def _examples(value: Any) -> str:
    return f"Examples: {listed(value)}." if isinstance(value, list) and value else ""


_WORDS: dict[str, Callable[[Any], str]] = {
    "pattern": _quoted("Must match the regular expression"),
    "format": _quoted("Format:"),
    "contentEncoding": _quoted("Encoding:"),
    "contentMediaType": _quoted("Media type:"),
    "minLength": _number("At least {} characters"),
    "maxLength": _number("At most {} characters"),
    "minimum": _number("At least {}"),
    "maximum": _number("At most {}"),
    "exclusiveMinimum": _number("More than {}"),
    "exclusiveMaximum": _number("Less than {}"),
    "multipleOf": _number("A multiple of {}"),
    "minItems": _number("At least {} items"),
    "maxItems": _number("At most {} items"),
    "minProperties": _number("At least {} properties"),
    "maxProperties": _number("At most {} properties"),
    "uniqueItems": lambda value: "All items must differ." if value is True else "",
    "additionalProperties": _others,
    "dependentRequired": _dependent,
    "enum": lambda value: f"One of: {listed(as_list(value))}.",
    "const": lambda value: f"Always {text_of(value)}.",
    "default": lambda value: f"Default: {text_of(value)}.",
    "examples": _examples,
    "example": lambda value: f"Example: {text_of(value)}.",
    "patternProperties": lambda value: (
        f"Properties whose names match these patterns must fit: {text_of(value)}."
    ),
    "not": lambda value: f"Must not fit this JSON Schema: {text_of(value)}.",
}


# --- compilation

_NOT_NULL = TYPES - {"null"}
_NODE = 10
"""The work for a schema, without its subschemas."""
MAX_LEVELS = 45
"""Maximum nesting of schemas: what can still be frozen, at two levels of JSON each."""


class Place(NamedTuple):
    """The compiler's position in the schema."""

    path: str = ""
    level: int = 0
    """The number of enclosing schemas."""
    objects: int = 0
    """The number of enclosing objects."""
    is_optional: bool = False
    """Whether it is inside an optional property."""
    is_root: bool = False
    home: Pointer = ()
    """The definition that it is part of."""

    def at(self, step: str, *, is_optional: bool = False) -> Place:
        """The position of a subschema."""
        path = f"{self.path}.{step}" if self.path else step
        is_optional = is_optional or self.is_optional
        return Place(path, self.level + 1, self.objects, is_optional, home=self.home)


def _has_other_type(schema: Any) -> bool:
    """Whether a schema obviously doesn't allow null: the question asked of every property."""
    if not isinstance(schema, dict):
        return False
    types = schema.get("type")
    return isinstance(types, str) and types in _NOT_NULL and "nullable" not in schema


class Run:
    """The state shared by all steps."""

    def __init__(
        self,
        root: Node,
        profile: Profile,
        budget: Budget,
        child: Callable[[Any, Place], tuple[Any, Plan]],
    ) -> None:
        self.root = root
        self.budget = budget
        self.profile = profile
        self.child = child
        """Compiles a subschema."""
        self.references = References(root, budget)
        self.inside: Counter[Pointer] = Counter()
        """The definitions that are currently being inlined, with nesting counts."""
        self.losses: list[Loss] = []
        self._lost = deque[tuple[str, str]](maxlen=3)
        """The last of them: a step may report the same one again."""
        self.is_faithful = True
        self.has_undo = False
        """Whether values must be converted back."""
        self.literals = 0
        self._validation = Validation(root, budget)

    def spend(self) -> None:
        """Charge the budget for one schema."""
        self.budget.spend(_NODE)

    def text_of(self, value: Any) -> str:
        """A value as JSON text, to compare schemas and to describe them to the model."""
        text = text_of(value)
        self.budget.spend_on(len(text))
        return text

    def is_same(self, one: Any, other: Any) -> bool:
        """Whether two JSON values are equal; unlike in Python, true is not 1."""
        return bool(one == other) and self.text_of(one) == self.text_of(other)

    def distinct(self, schemas: Iterable[Any]) -> list[Any]:
        """The schemas without duplicates."""
        found: dict[str, Any] = {}
        for schema in schemas:
            found.setdefault(self.text_of(schema), schema)
        return list(found.values())

    def lose(self, path: str, reason: str, *, is_unfaithful: bool = False) -> None:
        """Report a loss; `is_unfaithful` if the target forbids what the original allows."""
        self.is_faithful = self.is_faithful and not is_unfaithful
        loss = (path, reason)
        if loss not in self._lost:
            self._lost.append(loss)
            self.losses.append(Loss(path, reason))

    def fits(self, schema: Any, value: Any) -> bool:
        """Whether a value fits a schema of the original."""
        if value is None and _has_other_type(schema):
            return False
        return self._validation.holds(schema, value)


class Draft:
    """A schema being rewritten, and notes for its description."""

    __slots__ = ("entered", "is_cut", "node", "notes", "place", "plan", "run")

    def __init__(self, run: Run, node: Node, place: Place) -> None:
        self.run = run
        self.node = node
        self.place = place
        self.notes: list[str] = []
        self.plan = Plan()
        self.is_cut = False
        self.entered: list[Pointer] = []
        """The definitions inlined here in place of references."""

    @property
    def profile(self) -> Profile:
        """What the target supports."""
        return self.run.profile

    def lose(self, reason: str, words: str = "", *, is_unfaithful: bool = False) -> None:
        """Report a loss here, and describe it to the model."""
        self.run.lose(self.place.path, reason, is_unfaithful=is_unfaithful)
        if words:
            self.tell(words)

    def tell(self, words: str) -> None:
        """Add a sentence to the description."""
        said = self.node.get("description")  # `described` will search it
        self.run.budget.spend_on(len(words) + (len(said) if isinstance(said, str) else 0))
        self.notes.append(words)

    def drop(self, keyword: str, *, is_unfaithful: bool = False) -> None:
        """Remove a keyword, and describe it in the description instead."""
        value = self.node.pop(keyword)
        reason = f"{keyword} is moved to the description"
        self.lose(reason, note(keyword, value), is_unfaithful=is_unfaithful)

    def child(self, schema: Any, step: str, *, is_optional: bool = False) -> tuple[Any, Plan]:
        """Compile a subschema."""
        return self.run.child(schema, self.place.at(step, is_optional=is_optional))
