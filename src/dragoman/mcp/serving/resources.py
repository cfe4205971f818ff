"""Sessions as MCP resources: `dragoman://session/ID` (Markdown), `…/ID/json` (JSON)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

import mcp_types as types
from mcp_types import (
    Annotations,
    Resource,
    ResourceTemplate,
    TextResourceContents,
)

from dragoman.errors import InvalidInputError, NotFound
from dragoman.history.session_summaries import Listed
from dragoman.history.storage.protocol import Session
from dragoman.mcp.serving.reading import Wanted, moment, read_json, read_markdown
from dragoman.mcp.serving.served_sessions import ServedSessions
from dragoman.mcp.serving.shapes import whole_text
from dragoman.mcp.serving.tools import name_of

_MAX_PROMPT_CHARS = 200_000  # maximum characters of a conversation: about 50,000 tokens
_MAX_VALUES = 100  # maximum values in a completion, by the protocol
_SESSION = types.PromptArgument(
    name="session", description="The conversation: its name or id.", required=True
)
_CONTINUE = "continue_conversation"
_TASKS = {
    _CONTINUE: (
        "Above is a conversation that I had with an assistant. Continue it from where it ends, as"
        " that assistant: keep to what was agreed and decided. If its last message is mine, answer"
        " it; otherwise tell me in one or two sentences where we are, and ask how to go on."
    ),
    "summarize_conversation": (
        "Above is a conversation that I had with an assistant. Summarize it: what it was about,"
        " what was decided, what is still open."
    ),
}
PROMPTS = [
    types.Prompt(
        name=_CONTINUE,
        title="Continue a conversation",
        description="Continue a stored conversation, whichever model it was held with.",
        arguments=[_SESSION],
    ),
    types.Prompt(
        name="summarize_conversation",
        title="Summarize a conversation",
        description="Summarize a stored conversation: its topic, decisions and open questions.",
        arguments=[_SESSION],
    ),
]


async def prompt_of(
    served: ServedSessions, name: str, given: Mapping[str, str]
) -> types.GetPromptResult:
    """The messages of a prompt: the conversation as a resource, then the task."""
    asks = _TASKS.get(name)
    if asks is None:
        msg = f"there is no such prompt; the prompts are {', '.join(_TASKS)}"
        raise InvalidInputError(msg)
    wanted = given.get("session")
    if not wanted:
        msg = "the prompt needs a session: its name or id, as returned by list_sessions"
        raise InvalidInputError(msg)
    session = await served.named(wanted)
    text = await conversation(served, session, _MAX_PROMPT_CHARS)
    resource = types.TextResourceContents(
        uri=f"{PREFIX}{session.identity.digest}",
        mime_type="text/markdown",
        text=whole_text(text),
    )
    return types.GetPromptResult(
        messages=[
            types.PromptMessage(role="user", content=types.EmbeddedResource(resource=resource)),
            types.PromptMessage(role="user", content=types.TextContent(text=asks)),
        ]
    )


async def completions(
    served: ServedSessions,
    about: types.PromptReference | types.ResourceTemplateReference,
    argument: types.CompletionArgument,
) -> tuple[list[str], int]:
    """The first hundred matching values of an argument, and their total number."""
    if isinstance(about, types.PromptReference):
        is_known = about.name in _TASKS and argument.name == "session"
    else:
        templates = {template.uri_template for template in TEMPLATES}
        is_known = about.uri in templates and argument.name == "id"
    if not is_known:
        return [], 0
    identities = [session.identity for session in await served.all()]
    wants_names = isinstance(about, types.PromptReference)
    values = [name_of(each) if wants_names else each.digest for each in identities]
    found = [whole_text(value) for value in values if value.startswith(argument.value)]
    return found[:_MAX_VALUES], len(found)


PREFIX = "dragoman://session/"
_ADDRESS = re.compile(rf"{PREFIX}([0-9a-f]{{40}})(/json)?")
_MAX_CHARS = 1_000_000  # maximum characters of a resource
_NOT_FOUND = f"there is no such resource; the URIs are {PREFIX}ID and {PREFIX}ID/json"
_TOO_LARGE = (
    "the conversation is too large for a resource; read_session reads it page by page, and"
    " `dragoman history export` writes it to a file"
)

TEMPLATES = [
    ResourceTemplate(
        uri_template=f"{PREFIX}{{id}}",
        name="session",
        title="Conversation",
        description="A conversation as Markdown; only the last part if it is very long.",
        mime_type="text/markdown",
    ),
    ResourceTemplate(
        uri_template=f"{PREFIX}{{id}}/json",
        name="session-json",
        title="Conversation as JSON",
        description="A conversation as a Dragoman document, for `dragoman convert`.",
        mime_type="application/json",
    ),
]


class Address(NamedTuple):
    """The session and format of a URI."""

    id: str
    is_json: bool


def address_of(uri: str) -> Address:
    """Parse a URI; only the exact form is valid."""
    found = _ADDRESS.fullmatch(uri)
    if found is None:
        raise NotFound(_NOT_FOUND)
    return Address(found[1], found[2] is not None)


def resource_of(listed: Listed) -> Resource:
    """A session in the list of resources."""
    session = listed.session
    return Resource(
        uri=f"{PREFIX}{session.identity.digest}",
        name=whole_text(name_of(session.identity)),
        description=None if listed.first_line is None else whole_text(listed.first_line),
        mime_type="text/markdown",
        annotations=Annotations(last_modified=moment(session.updated_at)),
    )


async def contents_of(served: ServedSessions, uri: str) -> TextResourceContents:
    """The content of a resource."""
    address = address_of(uri)
    session = await served.of_id(address.id)
    if address.is_json:
        text, kind = await _json(served, session), "application/json"
    else:
        text, kind = await conversation(served, session, _MAX_CHARS), "text/markdown"
    return TextResourceContents(uri=uri, mime_type=kind, text=whole_text(text))


async def conversation(served: ServedSessions, session: Session, room: int) -> str:
    """A conversation as Markdown; if it doesn't fit, only its end, with a note."""
    page = await read_markdown(served.storage, session, Wanted(limit=room, max_chars=room))
    notes = [f"*{note}*" for note in page.unreadable]
    if page.more_before:
        notes.append("*Earlier messages are omitted; read_session reads them.*")
    return "\n\n".join((*notes, page.text))


async def _json(served: ServedSessions, session: Session) -> str:
    page = await read_json(served.storage, session, Wanted(limit=_MAX_CHARS, max_chars=_MAX_CHARS))
    if page.more_before:
        raise InvalidInputError(_TOO_LARGE)
    return page.text
