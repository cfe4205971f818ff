"""From the terms of a projected schema back to those of the original."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.model.validation.budget import TooManyStepsError
from dragoman.model.validation.problems import Validation

_MAX_DEPTH = 150
"""Of values within values: deeper than any that was read."""


class Plan:
    """What to undo in a value that fits a schema, by the type that the value has."""

    __slots__ = ("branches", "choices", "items", "members", "nulls", "prefix", "rest", "same")

    def __init__(self) -> None:
        self.members: dict[str, Plan] = {}
        self.rest: Plan | None = None
        self.nulls: set[str] = set()
        """Properties that are absent where they are null."""
        self.prefix: list[Plan] = []
        self.items: Plan | None = None
        self.choices: dict[str, Any] = {}
        """The values that texts stand for."""
        self.branches: list[tuple[Any, Plan]] = []
        """Of alternatives: the first whose schema fits is the one to undo."""
        self.same: Plan | None = None
        """The plan of the definition that is referred to."""

    @property
    def is_idle(self) -> bool:
        """Whether it does nothing itself, and knows of nobody who might."""
        return not (
            self.members or self.nulls or self.prefix or self.choices or self.branches
        ) and (self.rest is None and self.items is None and self.same is None)


CUT = Plan()
"""Of what stands for levels that were cut off: better left out where it may be."""


class Undo:
    """A plan, and the projected schema in which its references lead somewhere."""

    __slots__ = ("_plan", "_schema", "_wrapped")

    def __init__(self, plan: Plan, schema: Mapping[str, Any], wrapped: str | None) -> None:
        self._plan = plan
        self._schema = schema
        self._wrapped = wrapped

    def __call__(self, value: Any) -> Any:
        """The value in the original's terms. Takes any JSON, and changes nothing of it in place.

        A value that takes too much work, or nests too deeply, stays as it is.
        """
        if self._wrapped is not None and isinstance(value, Mapping):
            value = value.get(self._wrapped, value)
        try:
            return self._undone(self._plan, value, 0, Validation(self._schema))
        except (RecursionError, TooManyStepsError):
            return value

    def _undone(self, plan: Plan, value: Any, depth: int, validation: Validation) -> Any:
        while plan.same is not None and depth < _MAX_DEPTH:  # it may be a circle
            plan, depth = plan.same, depth + 1
        if depth >= _MAX_DEPTH:
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
