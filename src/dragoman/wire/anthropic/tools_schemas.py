"""Anthropic's JSON Schema dialects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import sub

from dragoman.model.frozen import EMPTY
from dragoman.model.requests import AnyTool
from dragoman.model.tools import ToolDefinition
from dragoman.wire.anthropic.dialect import TARGET, Block, is_own
from dragoman.wire.anthropic.rules_view import View
from dragoman.wire.schemas import PLAIN, Projection, Weight, projected
from dragoman.wire.schemas.profiles import ANNOTATIONS, CORE, FORMATS, REFERENCES, SCALARS, Profile
from dragoman.wire.schemas.request_schemas import Profiles
from dragoman.wire.target import Target

ANTHROPIC = Profile(name="anthropic", refused_at_root=frozenset({"oneOf", "allOf", "anyOf"}))
"""For tools that are not strict (W62)."""

ANTHROPIC_STRICT = Profile(
    name="anthropic-strict",
    keywords=CORE | REFERENCES | {"definitions", "const", "additionalProperties", "format"},
    formats=FORMATS | {"uri"},
    literals=SCALARS,
    any_types=("string", "number", "boolean", "null"),
    refused_at_root=frozenset({"anyOf", "enum", "const"}),
    wraps_root=True,
    cycles="cut",  # "Circular reference detected in schema definitions"
    reference_siblings=frozenset(),
    union_siblings=ANNOTATIONS,
    needs_type=True,
    needs_items=True,
    is_closed=True,
    defines_required=True,
    max_min_items=1,
    max_optional=24,  # for all strict tools of a request together, like the unions
    max_unions=16,
)
"""For strict tools and output formats: what the vendor's SDK makes of a schema."""

ANTHROPICS = Profiles(ANTHROPIC_STRICT, ANTHROPIC)
_ANTHROPICS_OF_OTHERS = Profiles(ANTHROPIC, ANTHROPIC)


def anthropic_profiles(target: Target) -> Profiles:
    """The profiles for a target that speaks Anthropic's dialect."""
    return ANTHROPICS if target.schemas.checks_strict else _ANTHROPICS_OF_OTHERS


# --- limits on strict schemas in one request

MAX_STRICT_TOOLS = 20
MAX_OPTIONAL = ANTHROPIC_STRICT.max_optional or 0
MAX_UNIONS = ANTHROPIC_STRICT.max_unions or 0


class StrictSchemaLimits:
    """Tracks the limits on strict schemas, which apply to a request as a whole.

    What is sent in any case counts first: the output schema and this dialect's own strict tools.
    """

    __slots__ = ("_body", "_left", "_tools")

    def __init__(self, tools: Iterable[AnyTool], body: Block) -> None:
        self._tools, self._body = tools, body
        self._left: list[int] = []

    def refusal(self, made: Projection) -> str | None:
        """Why one more strict tool exceeds a limit; counts it and returns None if it does not."""
        if not self._left:
            self._left = [MAX_STRICT_TOOLS, MAX_OPTIONAL, MAX_UNIONS]
            self._reserve()
        tools, optional, unions = self._left
        if tools < 1:
            return f"a request can have at most {MAX_STRICT_TOOLS} strict tools"
        if made.weight.optional > optional:
            return f"strict schemas can have at most {MAX_OPTIONAL} optional properties in total"
        if made.weight.unions > unions:
            return f"strict schemas can have at most {MAX_UNIONS} unions in total"
        self._count(1, made.weight)
        return None

    def _reserve(self) -> None:
        _, answer = View(self._body, TARGET).output_schema
        if isinstance(answer, Mapping):
            self._count(0, projected(answer, PLAIN).weight)
        for tool in self._tools:
            if isinstance(tool, ToolDefinition) and tool.strict is True and is_own(tool.origin):
                self._count(1, projected(tool.parameters or EMPTY, PLAIN).weight)

    def _count(self, tools: int, weight: Weight) -> None:
        self._left = [*map(sub, self._left, (tools, weight.optional, weight.unions))]
