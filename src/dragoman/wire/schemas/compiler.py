"""The walk over a schema: each step rewrites what the target would not take."""

from __future__ import annotations

from typing import Any

from dragoman.model.validation.budget import Budget
from dragoman.wire.schemas.arrays import array_step
from dragoman.wire.schemas.definitions import Definitions
from dragoman.wire.schemas.keywords import Node, declared
from dragoman.wire.schemas.leftovers import check_limits, leftover_step
from dragoman.wire.schemas.literals import literal_step
from dragoman.wire.schemas.notes import described
from dragoman.wire.schemas.objects import object_step
from dragoman.wire.schemas.opening import cut, merge_all, open_references
from dragoman.wire.schemas.profiles import Profile
from dragoman.wire.schemas.roots import WRAPPED, rooted
from dragoman.wire.schemas.run import MAX_LEVELS, Draft, Place, Run
from dragoman.wire.schemas.types import type_step
from dragoman.wire.schemas.undoing import CUT, Plan
from dragoman.wire.schemas.unions import malformed_step, union_step


class Compiler:
    """One schema for one profile."""

    def __init__(self, root: Node, profile: Profile, budget: Budget) -> None:
        self.run = Run(root, profile, budget, self.compile)
        self._root, is_wrapped = rooted(self.run)
        self.wrapped = WRAPPED if is_wrapped else None
        """The property that holds the value, where that had to be put into an object."""
        self._definitions = Definitions(self.run, has_root=not is_wrapped)

    def compiled(self) -> tuple[Node, Plan]:
        """The schema for the target, and how to undo it."""
        schema, plan = self.compile(self._root, Place(is_root=True))
        self._definitions.settle(plan)
        if self.wrapped is not None:
            plan = plan.members.get(self.wrapped, Plan())
        schema |= self._definitions.compiled()
        check_limits(self.run, schema)
        return schema, plan

    def compile(self, schema: Any, place: Place) -> tuple[Any, Plan]:
        """A schema for the target, and how to undo it."""
        run = self.run
        run.spend()
        if isinstance(schema, bool) and run.profile.keywords is None:
            return schema, Plan()
        draft = Draft(run, dict(schema) if isinstance(schema, dict) else {}, place)
        if not isinstance(schema, (dict, bool)):
            draft.lose("what is no schema is taken for one that allows anything")
        if schema is False:
            draft.lose("that nothing is allowed can't be said", "No value fits.")
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
            if not union_step(draft) or profile.union_siblings is None:
                object_step(draft)
                array_step(draft)
            leftover_step(draft)
        return described(draft.node, draft.notes), draft.plan


def _is_too_deep(draft: Draft) -> bool:
    most = draft.profile.most_levels
    is_object = "object" in declared(draft.node) or "properties" in draft.node
    return most is not None and is_object and draft.place.objects >= most
