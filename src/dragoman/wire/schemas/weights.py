"""What targets count: in a schema, or in all schemas of a request together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from dragoman.wire.schemas.keywords import Node, as_list, as_map, declared, walk


class Weight(NamedTuple):
    """What targets count in a schema as a whole."""

    properties: int
    optional: int
    unions: int


def weight_of(schema: Mapping[str, Any]) -> Weight:
    """How many of each there are."""
    nodes = list(walk(schema))
    return Weight(
        sum(len(as_map(node.get("properties"))) for node in nodes),
        sum(map(_optional, nodes)),
        sum("anyOf" in node or len(declared(node)) > 1 for node in nodes),
    )


def _optional(node: Node) -> int:
    required = {name for name in as_list(node.get("required")) if isinstance(name, str)}
    return sum(name not in required for name in as_map(node.get("properties")))
