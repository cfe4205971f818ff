"""The schemas of one request, compiled for its target, and the conversion of values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from dragoman.model.requests import Output
from dragoman.model.tools import ToolDefinition
from dragoman.wire.context import NOTHING, Context, Undo
from dragoman.wire.losses import Loss, Repair
from dragoman.wire.schemas.profiles import Profile
from dragoman.wire.schemas.projection import Costs, Projection, Undos, projected
from dragoman.wire.text_tools import SENT_AS_FUNCTION, TEXT_PARAMETERS, as_text

_NO_PARAMETERS: Mapping[str, Any] = {"type": "object", "properties": {}}
_LABELS = "titles, comments or the like, which don't affect output, are left out"
_ALONE = frozenset({"$ref", "anyOf"})  # allow no sibling keywords (W92, W93)
_UNFAITHFUL = "not strict: the target can't enforce this schema without changing what it allows"


class Profiles(NamedTuple):
    """The profiles of a target for strict and for other schemas."""

    strict: Profile
    loose: Profile


class SentSchemas:
    """Collects losses, and the conversions for the response, schema by schema."""

    __slots__ = ("_costs", "_losses", "_output", "_repairs", "_undos")

    def __init__(self, losses: list[Loss], repairs: list[Repair]) -> None:
        self._costs = Costs()
        self._losses = losses
        self._repairs = repairs
        self._undos: dict[str, Undo] = {}
        self._output: Undos | None = None

    @property
    def context(self) -> Context:
        """The conversions for the response."""
        if not self._undos and self._output is None:
            return NOTHING
        return Context(undos=self._undos, output=self._output)

    def projected(self, schema: Mapping[str, Any], profile: Profile, where: str) -> Projection:
        """Compile a schema for a profile, within this request's limits."""
        return projected(schema, profile, self._costs, where)

    def tool(
        self,
        tool: ToolDefinition,
        path: str,
        profiles: Profiles,
        refusal: Callable[[Projection], str | None] | None = None,
    ) -> tuple[Mapping[str, Any], bool]:
        """The parameters of a tool from another dialect, and whether it is strict.

        `refusal` returns why one more strict tool would exceed the target's limits, or None.
        """
        schema = _NO_PARAMETERS if tool.parameters is None else tool.parameters
        is_strict = tool.strict is True
        where = f"{path}.parameters"
        profile = profiles.strict if is_strict else profiles.loose
        made = projected(schema, profile, self._costs, where)
        if is_strict and profiles.loose is not profiles.strict:
            reason = None if made.is_faithful else _UNFAITHFUL
            if reason is None and refusal is not None:
                reason = refusal(made)
            if reason is not None:
                self._losses.append(Loss(f"{path}.strict", reason))
                is_strict, made = False, self.projected(schema, profiles.loose, where)
        if made.losses or made.drops_labels:
            self._note(made, where)
        if made.changes_values:
            self._undos[tool.name] = made.undo
        return made.schema, is_strict

    def text_tool(self, tool: ToolDefinition, path: str) -> Mapping[str, Any]:
        """The parameters of a free-text tool, if tools take only objects."""
        self._losses.append(Loss(path, SENT_AS_FUNCTION))
        self._undos[tool.name] = as_text
        return TEXT_PARAMETERS

    def output(self, output: Output, profiles: Profiles) -> tuple[Mapping[str, Any], bool]:
        """The output schema, and whether it is strict."""
        schema = {} if output.schema is None else output.schema
        is_strict = output.strict is True
        where = "output.schema"
        made = self.projected(schema, profiles.strict if is_strict else profiles.loose, where)
        if is_strict and not made.is_faithful and profiles.loose is not profiles.strict:
            self._losses.append(Loss("output.strict", _UNFAITHFUL))
            is_strict, made = False, self.projected(schema, profiles.loose, where)
        self.answer(made)
        return made.schema, is_strict

    def answer(self, made: Projection) -> None:
        """Record the losses and the conversion of the output schema."""
        self._note(made, "output.schema")
        if made.changes_values:
            self._output = made.undo

    def _note(self, made: Projection, where: str) -> None:
        if made.losses:
            self._losses += made.losses_at(where)
        if made.drops_labels:
            self._repairs.append(Repair(where, "I14", "dropped", _LABELS))

    def lose_labels(self, output: Output) -> None:
        """Report the name and description of an output that has no schema as losses."""
        for name in ("name", "description"):
            if getattr(output, name) is not None:
                self._losses.append(Loss(f"output.{name}", "not supported without a schema"))

    def labelled(self, schema: Mapping[str, Any], output: Output) -> Mapping[str, Any]:
        """The output schema, with the output's name as its title and its description."""
        added: dict[str, Any] = {}
        may_stand = schema.keys().isdisjoint(_ALONE)
        for key, label in (("title", output.name), ("description", output.description)):
            if label is None or schema.get(key) == label:
                continue
            if may_stand and key not in schema:
                added[key] = label
                reason = f"sent as the schema's {key}"
                self._repairs.append(Repair("output", "I14", "moved", reason))
            elif key == "title":
                reason = "the schema has a title of its own, or can't have one"
                self._repairs.append(Repair("output.name", "I14", "dropped", reason))
            else:
                self._losses.append(Loss("output.description", "the schema can't hold it"))
        return {**schema, **added} if added else schema
