"""Errors about stored state, worded as OpenAI's."""

from __future__ import annotations

from typing import Final

from dragoman.errors import InvalidRequest
from dragoman.gateway.responses.ids import shown

NOT_KEPT: Final = "This gateway stores no responses."


def no_response(id: str, kept: str = "") -> InvalidRequest:
    """The response in the path was not found; `kept` says how responses are kept here."""
    return InvalidRequest(f"Response with id {shown(id)} not found. {kept}".rstrip(), status=404)


def no_compaction() -> InvalidRequest:
    """`/v1/responses/compact`: a summary of our own would be no conversation of the provider's."""
    return InvalidRequest(
        "This gateway doesn't compact conversations. Shorten the input yourself, or send "
        "`context_management` with a request: a provider that can compact does it then.",
        status=404, code="unsupported_endpoint",
    )  # fmt: skip


def no_previous(id: str, kept: str = "") -> InvalidRequest:
    """`previous_response_id` was not found. OpenAI returns 400, not 404; Codex checks the code."""
    why = f" {kept} Send the full input instead." if kept else ""
    return InvalidRequest(
        f"Previous response with id {shown(id)} not found.{why}",
        status=400, param="previous_response_id", code="previous_response_not_found",
    )  # fmt: skip


def unfinished(id: str, status: str) -> InvalidRequest:
    """The previous response has no output to continue from."""
    return InvalidRequest(
        f"Previous response with id {shown(id)} can't be continued: its status is {status}.",
        status=400, param="previous_response_id", code="previous_response_not_completed",
    )  # fmt: skip


def no_conversation(id: str) -> InvalidRequest:
    """The conversation doesn't exist or belongs to another key."""
    return InvalidRequest(f"Conversation with id {shown(id)} not found.", status=404)


def no_item(id: str, where: str | None = None) -> InvalidRequest:
    """The item was not found."""
    return InvalidRequest(f"Item with id {shown(id)} not found.", status=404, param=where)


def too_long(what: str, param: str) -> InvalidRequest:
    """The stored state exceeds what can be sent with a request."""
    return InvalidRequest(what, status=400, param=param, code="context_length_exceeded")


def invalid(what: str, param: str | None = None) -> InvalidRequest:
    """Any other error that the client can fix."""
    return InvalidRequest(what, status=400, param=param)


def no_store(*, param: str) -> InvalidRequest:
    """The request needs a store, but none is configured."""
    return invalid(f"`{param}` requires a history store, and this server has none.", param)
