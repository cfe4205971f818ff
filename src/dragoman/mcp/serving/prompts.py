"""MCP prompts: a conversation, with a task."""

from __future__ import annotations

from collections.abc import Mapping

import mcp_types as types

from dragoman.errors import InvalidInputError
from dragoman.mcp.serving.resources import PREFIX, TEMPLATES, conversation
from dragoman.mcp.serving.served_sessions import ServedSessions
from dragoman.mcp.serving.shapes import whole_text
from dragoman.mcp.serving.tools import name_of

_MAX_CHARS = 200_000  # maximum characters of a conversation: about 50,000 tokens
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
    text = await conversation(served, session, _MAX_CHARS)
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
