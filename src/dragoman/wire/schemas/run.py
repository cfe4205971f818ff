"""One compilation: what it is for, what it has found out, and what may still be spent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from dragoman.model.validation.budget import Budget
from dragoman.model.validation.problems import Validation
from dragoman.wire.losses import Loss
from dragoman.wire.schemas.keywords import Node
from dragoman.wire.schemas.notes import note, text_of
from dragoman.wire.schemas.profiles import Profile
from dragoman.wire.schemas.references import Pointer, References
from dragoman.wire.schemas.undoing import Plan

_NODE = 10
"""The steps that a schema takes, without what is inside it."""
MAX_LEVELS = 45
"""Of schemas within schemas: what can still be frozen, at two levels of JSON each."""


class Place(NamedTuple):
    """Where in the schema the compiler is."""

    path: str = ""
    level: int = 0
    """How many schemas this one is inside of."""
    objects: int = 0
    """How many objects this one is inside of."""
    is_optional: bool = False
    """Whether it is inside a property that may be left out."""
    is_root: bool = False
    home: Pointer = ()
    """The definition that it is part of."""

    def at(self, step: str, *, is_optional: bool = False) -> Place:
        """The place of a schema inside this one."""
        path = f"{self.path}.{step}" if self.path else step
        is_optional = is_optional or self.is_optional
        return Place(path, self.level + 1, self.objects, is_optional, home=self.home)


class Run:
    """The state that all steps share."""

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
        """Compiles a schema inside the one at hand."""
        self.references = References(root, budget)
        self.inside: Counter[Pointer] = Counter()
        """The definitions that stand where they are referred to, while that lasts."""
        self.losses: list[Loss] = []
        self.bends = False
        self.acts = False
        """Whether there is anything to undo."""
        self.literals = 0
        self._validation = Validation(root, budget)

    def spend(self) -> None:
        """Count a schema."""
        self.budget.spend(_NODE)

    def text_of(self, value: Any) -> str:
        """A value as JSON text: by it schemas are told apart, and told to the model."""
        text = text_of(value)
        self.budget.spend_on(len(text))
        return text

    def is_same(self, one: Any, other: Any) -> bool:
        """Whether two JSON values are the same; unlike in Python, true is not 1."""
        return bool(one == other) and self.text_of(one) == self.text_of(other)

    def distinct(self, schemas: Iterable[Any]) -> list[Any]:
        """Each of these once."""
        found: dict[str, Any] = {}
        for schema in schemas:
            found.setdefault(self.text_of(schema), schema)
        return list(found.values())

    def lose(self, path: str, reason: str, *, bends: bool = False) -> None:
        """Note what the target can't be told; `bends` where it forbids what was allowed."""
        self.bends = self.bends or bends
        loss = Loss(path, reason)
        if loss not in self.losses[-3:]:
            self.losses.append(loss)

    def fits(self, schema: Any, value: Any) -> bool:
        """Whether a value fits a schema of the original."""
        return self._validation.holds(schema, value)


class Draft:
    """A schema being rewritten, and what to say in its description."""

    __slots__ = ("entered", "is_cut", "node", "notes", "place", "plan", "run")

    def __init__(self, run: Run, node: Node, place: Place) -> None:
        self.run = run
        self.node = node
        self.place = place
        self.notes: list[str] = []
        self.plan = Plan()
        self.is_cut = False
        self.entered: list[Pointer] = []
        """The definitions that stand here in the place of references."""

    @property
    def profile(self) -> Profile:
        """What the target takes."""
        return self.run.profile

    def lose(self, reason: str, words: str = "", *, bends: bool = False) -> None:
        """Note a loss here, and tell the model in words."""
        self.run.lose(self.place.path, reason, bends=bends)
        if words:
            self.tell(words)

    def tell(self, words: str) -> None:
        """Say something in the description."""
        said = self.node.get("description")  # in which it will be looked for
        self.run.budget.spend_on(len(words) + (len(said) if isinstance(said, str) else 0))
        self.notes.append(words)

    def drop(self, keyword: str, *, bends: bool = False) -> None:
        """Take a keyword out; what it says goes into the description."""
        value = self.node.pop(keyword)
        self.lose(f"{keyword} is told in words", note(keyword, value), bends=bends)

    def child(self, schema: Any, step: str, *, is_optional: bool = False) -> tuple[Any, Plan]:
        """A schema inside this one, compiled."""
        return self.run.child(schema, self.place.at(step, is_optional=is_optional))
