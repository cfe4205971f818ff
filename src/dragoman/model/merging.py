"""Merges consecutive messages of a role, and combines or splits tool results."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from dragoman.model.content import AnyPart
from dragoman.model.messages import Message, make_message
from dragoman.model.parts import Text, own_extras
from dragoman.model.roles import Role
from dragoman.model.tools import ToolCall, ToolResult


def merged_per_role(messages: Iterable[Message], separator: str) -> Iterator[Message]:
    """Merges consecutive messages that have the same role and name.

    Texts are joined by the separator and followed by the tool calls. Messages with other content
    (media, several texts, tool results) are not merged, because that would change their meaning.
    The first message's id is kept; later metadata wins.
    """
    pending: Message | None = None
    for message in messages:
        if pending is not None and _are_mergeable(pending, message):
            pending = _merged(pending, message, separator)
            continue
        if pending is not None:
            yield pending
        pending = message
    if pending is not None:
        yield pending


def _are_mergeable(one: Message, other: Message) -> bool:
    return (
        one.role is other.role
        and one.role is not Role.TOOL
        and one.name == other.name
        and _is_plain(one)
        and _is_plain(other)
    )


def _is_plain(message: Message) -> bool:
    """Whether a message has at most one text, and nothing else but tool calls."""
    texts = [part for part in message.parts if isinstance(part, Text) and not _has_more(part)]
    return len(texts) <= 1 and len(texts) + len(message.tool_calls) == len(message.parts)


def _has_more(text: Text) -> bool:
    """Whether a text has citations, a signature or extras that would be wrong or lost if merged."""
    return bool(text.citations or text.signature or text.cache or "canonical" in text.extras)


def _merged(one: Message, other: Message, separator: str) -> Message:
    text = separator.join(said for said in (one.text, other.text) if said)
    calls = tuple(
        part
        for message in (one, other)
        for part in message.parts_with_origin()
        if isinstance(part, ToolCall)
    )
    texts: tuple[AnyPart, ...] = (Text(text),) if text or not calls else ()
    usage = one.usage + other.usage if one.usage and other.usage else one.usage or other.usage
    return one.replace_unchecked(
        parts=(*texts, *calls),
        metadata={**one.metadata, **other.metadata},
        extras=_own_extras(one, other),
        usage=usage,
        finish=other.finish,
        origin=one.origin if one.origin == other.origin else None,
    )


def _own_extras(*messages: Message) -> dict[str, Any]:
    """The canonical extras, later ones win; dialect extras describe the original messages only."""
    fields = {
        key: value for message in messages for key, value in own_extras(message.extras).items()
    }
    return {"canonical": fields} if fields else {}


def consolidated(messages: Iterable[Message]) -> Iterator[Message]:
    """Combines consecutive tool messages: one message per round of calls."""
    pending: Message | None = None
    for message in messages:
        if pending is not None and pending.role is message.role is Role.TOOL:
            pending = pending.replace_unchecked(
                parts=(*pending.parts_with_origin(), *message.parts_with_origin()),
                metadata={**pending.metadata, **message.metadata},
                extras=_own_extras(pending, message),
            )
            continue
        if pending is not None:
            yield pending
        pending = message
    if pending is not None:
        yield pending


def split_results(messages: Iterable[Message]) -> Iterator[Message]:
    """Splits messages so that each tool result is in a tool message of its own.

    Other content (such as a user's text next to results, as in Anthropic) follows in a message of
    the original role. The first message keeps the id, metadata and other fields.
    """
    for message in messages:
        results = message.tool_results
        if not results or (message.role is Role.TOOL and len(message.parts) == 1):
            yield message
            continue
        rest = tuple(part for part in message.parts if not isinstance(part, ToolResult))
        pieces = [_piece(message, Role.TOOL, (result,)) for result in results]
        if rest:
            pieces.append(_piece(message, message.role, rest))
        yield pieces[0].replace(
            id=message.id,
            metadata=message.metadata,
            extras=_own_extras(message),
            usage=message.usage,
            finish=message.finish,
        )
        yield from pieces[1:]


def _piece(message: Message, role: Role, parts: tuple[AnyPart, ...]) -> Message:
    return make_message(
        role,
        parts,
        name=message.name if role is message.role else None,
        origin=message.origin,
        created_at=message.created_at,
    )
