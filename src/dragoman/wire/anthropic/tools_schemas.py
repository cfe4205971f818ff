"""What Anthropic takes of JSON Schema."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import sub

from dragoman.model.frozen import EMPTY
from dragoman.model.requests import AnyTool
from dragoman.model.tools import ToolDefinition
from dragoman.wire.anthropic.dialect import TARGET, Block, is_ours
from dragoman.wire.anthropic.rules_view import View
from dragoman.wire.schemas import PLAIN, Projection, Weight, projected
from dragoman.wire.schemas.profiles import ANNOTATIONS, CORE, FORMATS, REFERENCES, SCALARS, Profile
from dragoman.wire.schemas.request_schemas import Profiles
from dragoman.wire.target import Target

ANTHROPIC = Profile(name="anthropic", refused_at_root=frozenset({"oneOf", "allOf", "anyOf"}))
"""Tools that are not strict (W62)."""

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
    max_optional=24,  # of all strict tools of a request together, as are the unions
    max_unions=16,
)
"""Strict tools and output formats: what the vendor's SDK makes of a schema before it sends it."""

ANTHROPICS = Profiles(ANTHROPIC_STRICT, ANTHROPIC)
_ANTHROPICS_OF_OTHERS = Profiles(ANTHROPIC, ANTHROPIC)


def anthropic_profiles(target: Target) -> Profiles:
    """Those of a host that speaks Anthropic's dialect."""
    return ANTHROPICS if target.schemas.checks_strict else _ANTHROPICS_OF_OTHERS


# --- how much of strict schemas one request may hold

MAX_STRICT_TOOLS = 20
MAX_OPTIONAL = ANTHROPIC_STRICT.max_optional or 0
MAX_UNIONS = ANTHROPIC_STRICT.max_unions or 0


class StrictSchemaLimits:
    """How much of strict schemas is left: there are limits for all of a request together.

    What is sent in any case, the schema of the answer and strict tools of the dialect's own, goes
    first.
    """

    __slots__ = ("_body", "_left", "_tools")

    def __init__(self, tools: Iterable[AnyTool], body: Block) -> None:
        self._tools, self._body = tools, body
        self._left: list[int] = []

    def refusal(self, made: Projection) -> str | None:
        """Why one more strict tool is too much; where it is not, it is counted."""
        if not self._left:
            self._left = [MAX_STRICT_TOOLS, MAX_OPTIONAL, MAX_UNIONS]
            self._reserve()
        tools, optional, unions = self._left
        if tools < 1:
            return f"there are more strict tools than the {MAX_STRICT_TOOLS} that are taken"
        if made.weight.optional > optional:
            return f"all strict schemas may have {MAX_OPTIONAL} optional properties together"
        if made.weight.unions > unions:
            return f"all strict schemas may have {MAX_UNIONS} unions together"
        self._count(1, made.weight)
        return None

    def _reserve(self) -> None:
        _, answer = View(self._body, TARGET).output_schema
        if isinstance(answer, Mapping):
            self._count(0, projected(answer, PLAIN).weight)
        for tool in self._tools:
            if isinstance(tool, ToolDefinition) and tool.strict is True and is_ours(tool.origin):
                self._count(1, projected(tool.parameters or EMPTY, PLAIN).weight)

    def _count(self, tools: int, weight: Weight) -> None:
        self._left = [*map(sub, self._left, (tools, weight.optional, weight.unions))]
