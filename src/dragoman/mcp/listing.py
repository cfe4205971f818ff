"""Lists what a server offers, page by page, and converts it to our types."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import mcp_types as types
from mcp import Client

from dragoman.agent.context import RunContext
from dragoman.mcp.connection import Connection
from dragoman.mcp.content import parts_of, resource_part
from dragoman.mcp.values import (
    Prompt,
    PromptArgument,
    Resource,
    ResourceTemplate,
    ServerInfo,
)
from dragoman.model.collection import Messages
from dragoman.model.messages import Message
from dragoman.model.roles import Role
from dragoman.model.tools import ResultPart
from dragoman.model.value import expect

MAX_PAGES = 100
MAX_ITEMS = 10_000
"""Maximum items of any kind: a server's list may be endless."""
_MILLISECONDS = 1_000


class Listed(NamedTuple):
    """A list as received from a server."""

    items: list[Any]
    expires: float
    """Expiry time as given by the server; 0 if it gives none."""
    made: Any = None

    def is_fresh(self, connection: Connection, run: RunContext[Any] | None) -> bool:
        """Whether the list can be reused."""
        if connection.is_told_of_changes or (run is not None and run.step > 0):
            return True
        return asyncio.get_running_loop().time() < self.expires


async def _all(method: Callable[..., Awaitable[Any]], field: str) -> tuple[list[Any], int]:
    """All pages of a list, and its validity in milliseconds."""
    found: list[Any] = []
    cursor: str | None = None
    seen: set[str | None] = set()
    holds = 0
    for _ in range(MAX_PAGES):
        page = await method(cursor=cursor)
        found += getattr(page, field)
        holds = getattr(page, "ttl_ms", None) or 0
        cursor = page.next_cursor
        if cursor is None or cursor in seen or len(found) >= MAX_ITEMS:
            break
        seen.add(cursor)
    return found[:MAX_ITEMS], holds


async def tools(client: Client) -> Listed:
    """The tools as the server describes them."""
    if client.server_capabilities.tools is None:
        return Listed([], 0)
    found, holds = await _all(client.list_tools, "tools")
    return Listed(found, asyncio.get_running_loop().time() + holds / _MILLISECONDS)


async def resources(client: Client) -> tuple[Resource, ...]:
    """The resources."""
    if client.server_capabilities.resources is None:
        return ()
    found, _ = await _all(client.list_resources, "resources")
    return tuple(
        Resource(
            uri=str(each.uri), name=each.name, title=each.title, description=each.description,
            mime=each.mime_type, size=each.size,
        )
        for each in found
    )  # fmt: skip


async def templates(client: Client) -> tuple[ResourceTemplate, ...]:
    """The resource templates."""
    if client.server_capabilities.resources is None:
        return ()
    found, _ = await _all(client.list_resource_templates, "resource_templates")
    return tuple(
        ResourceTemplate(
            uri_template=each.uri_template, name=each.name, title=each.title,
            description=each.description, mime=each.mime_type,
        )
        for each in found
    )  # fmt: skip


async def read(uri: str, client: Client) -> tuple[ResultPart, ...]:
    """The content of a resource."""
    result = await client.read_resource(uri)
    return tuple(resource_part(each) for each in result.contents)


async def prompts(client: Client) -> tuple[Prompt, ...]:
    """The prompts."""
    if client.server_capabilities.prompts is None:
        return ()
    found, _ = await _all(client.list_prompts, "prompts")
    return tuple(
        Prompt(
            name=each.name, title=each.title, description=each.description,
            arguments=tuple(
                PromptArgument(
                    name=one.name, description=one.description, is_required=bool(one.required)
                )
                for one in each.arguments or ()
            ),
        )
        for each in found
    )  # fmt: skip


async def prompt(name: str, arguments: dict[str, str], client: Client) -> Messages:
    """The messages of a prompt."""
    result = await client.get_prompt(name, arguments)
    return Messages.from_any(
        [
            Message(
                Role.ASSISTANT if each.role == "assistant" else Role.USER, [*parts_of(each.content)]
            )
            for each in result.messages
        ]
    )


async def complete(
    of: Prompt | ResourceTemplate,
    argument: str,
    value: str,
    others: dict[str, str],
    client: Client,
) -> tuple[str, ...]:
    """Completions for an argument."""
    ref: types.PromptReference | types.ResourceTemplateReference
    if isinstance(of, Prompt):
        ref = types.PromptReference(type="ref/prompt", name=of.name)
    else:
        expect(of, ResourceTemplate, "the Prompt or ResourceTemplate of the argument")
        ref = types.ResourceTemplateReference(type="ref/resource", uri=of.uri_template)
    given = {"name": argument, "value": value}
    result = await client.complete(ref, given, context_arguments=others or None)
    return tuple(result.completion.values)


async def tell_roots(client: Client) -> None:
    """Notify of changed roots; servers since 2026-07-28 ask when they need them."""
    if client.session.initialize_result is not None:
        await client.session.send_notification(types.RootsListChangedNotification())


def server_info(client: Client) -> ServerInfo:
    """The server's description of itself."""
    info, has = client.server_info, client.server_capabilities
    kinds = ("tools", "resources", "prompts", "logging", "completions")
    return ServerInfo(
        name=None if info is None else info.name,
        version=None if info is None else info.version,
        protocol=client.protocol_version,
        instructions=client.instructions,
        capabilities=frozenset(kind for kind in kinds if getattr(has, kind) is not None),
    )
