"""Converts values of a compiled schema back to the original schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.model.validation.budget import TooManyStepsError
from dragoman.model.validation.problems import Validation
from dragoman.wire.schemas.text_undo import MAX_DEPTH, TextUndo


class Plan:
    """How to convert a value that fits a schema, depending on the value's type."""

    __slots__ = ("branches", "choices", "items", "members", "nulls", "prefix", "rest", "same")

    def __init__(self) -> None:
        self.members: dict[str, Plan] = {}
        self.rest: Plan | None = None
        self.nulls: set[str] = set()
        """Properties to remove if they are null."""
        self.prefix: list[Plan] = []
        self.items: Plan | None = None
        self.choices: dict[str, Any] = {}
        """The original values of enumerated strings."""
        self.branches: list[tuple[Any, Plan]] = []
        """Alternatives: the first whose schema fits is used."""
        self.same: Plan | None = None
        """The plan of the referenced definition."""

    @property
    def is_idle(self) -> bool:
        """Whether it does nothing, and refers to no other plan."""
        return not (
            self.members or self.nulls or self.prefix or self.choices or self.branches
        ) and (self.rest is None and self.items is None and self.same is None)


IDLE = Plan()
"""For schemas whose values are the same in the original."""
CUT = Plan()
"""For the placeholder of levels that were cut off, which is dropped where possible."""


class Undo:
    """A plan, and the compiled schema that resolves its references."""

    __slots__ = ("_plan", "_schema", "_wrapped")

    def __init__(self, plan: Plan, schema: Mapping[str, Any], wrapped: str | None) -> None:
        self._plan = plan
        self._schema = schema
        self._wrapped = wrapped

    def __call__(self, value: Any) -> Any:
        """Convert a value to the original schema. Accepts any JSON, and modifies nothing in place.

        A value that takes too much work, or nests too deeply, is returned unchanged.
        """
        if self._wrapped is not None and isinstance(value, Mapping):
            value = value.get(self._wrapped, value)
        try:
            return self._undone(self._plan, value, 0, Validation(self._schema))
        except (RecursionError, TooManyStepsError):
            return value

    def of_text(self, *, takes_objects: bool = False) -> TextUndo:
        """The same for the text of a value, in pieces."""
        return TextUndo(self._plan, self._schema, self._wrapped, takes_objects=takes_objects)

    def _undone(self, plan: Plan, value: Any, depth: int, validation: Validation) -> Any:
        while plan.same is not None and depth < MAX_DEPTH:  # it may be circular
            plan, depth = plan.same, depth + 1
        if depth >= MAX_DEPTH:
            return value
        for schema, branch in plan.branches:
            if validation.holds(schema, value):
                return self._undone(branch, value, depth + 1, validation)
        if isinstance(value, str):
            return plan.choices.get(value, value)
        if isinstance(value, Mapping):
            return self._object(plan, value, depth + 1, validation)
        if isinstance(value, (list, tuple)) and (plan.items is not None or plan.prefix):
            return self._array(plan, value, depth + 1, validation)
        return value

    def _object(
        self, plan: Plan, value: Mapping[str, Any], depth: int, validation: Validation
    ) -> Any:
        if not (plan.members or plan.nulls or plan.rest):
            return value
        undone = {}
        for name, item in value.items():
            if item is None and name in plan.nulls:
                continue
            inner = plan.members.get(name, plan.rest)
            undone[name] = item if inner is None else self._undone(inner, item, depth, validation)
        return undone

    def _array(self, plan: Plan, value: Any, depth: int, validation: Validation) -> Any:
        plans = [*plan.prefix, *[plan.items] * (len(value) - len(plan.prefix))]
        return [
            item if inner is None else self._undone(inner, item, depth, validation)
            for inner, item in zip(plans, value, strict=False)
        ]
