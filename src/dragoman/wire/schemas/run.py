"""One compilation: what it is for, what it has found out, and what may still be spent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

from dragoman.errors import InvalidInputError
from dragoman.model.validation.problems import fits
from dragoman.wire.losses import Loss
from dragoman.wire.schemas.keywords import Node
from dragoman.wire.schemas.notes import note
from dragoman.wire.schemas.profiles import Profile
from dragoman.wire.schemas.references import Pointer, References
from dragoman.wire.schemas.undoing import Plan

MAX_NODES = 20_000
"""How many schemas a schema may grow into: references can double it at every step."""
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
        self, root: Node, profile: Profile, child: Callable[[Any, Place], tuple[Any, Plan]]
    ) -> None:
        self.root = root
        self.profile = profile
        self.child = child
        """Compiles a schema inside the one at hand."""
        self.references = References(root)
        self.inside: Counter[Pointer] = Counter()
        """The definitions that stand where they are referred to, while that lasts."""
        self.losses: list[Loss] = []
        self.bends = False
        self.acts = False
        """Whether there is anything to undo."""
        self.literals = 0
        self._spent = 0

    def spend(self) -> None:
        """Count a schema."""
        self._spent += 1
        if self._spent > MAX_NODES:
            msg = f"the schema grows to more than {MAX_NODES} schemas for this target"
            raise InvalidInputError(msg)

    def lose(self, path: str, reason: str, *, bends: bool = False) -> None:
        """Note what the target can't be told; `bends` where it forbids what was allowed."""
        self.bends = self.bends or bends
        loss = Loss(path, reason)
        if loss not in self.losses[-3:]:
            self.losses.append(loss)

    def fits(self, schema: Any, value: Any) -> bool:
        """Whether a value fits a schema of the original."""
        return fits(schema, value, self.root)


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
            self.notes.append(words)

    def drop(self, keyword: str, *, bends: bool = False) -> None:
        """Take a keyword out; what it says goes into the description."""
        value = self.node.pop(keyword)
        self.lose(f"{keyword} is told in words", note(keyword, value), bends=bends)

    def child(self, schema: Any, step: str, *, is_optional: bool = False) -> tuple[Any, Plan]:
        """A schema inside this one, compiled."""
        return self.run.child(schema, self.place.at(step, is_optional=is_optional))
