"""The errors of stored state, as OpenAI words them."""

from __future__ import annotations

from dragoman.errors import InvalidRequest
from dragoman.gateway.responses.ids import shown


def no_response(id: str) -> InvalidRequest:
    """At a path that names a response."""
    return InvalidRequest(f"Response with id {shown(id)} not found.", status=404)


def no_previous(id: str) -> InvalidRequest:
    """In `previous_response_id`. OpenAI answers 400 here, not 404; Codex looks at the code."""
    return InvalidRequest(
        f"Previous response with id {shown(id)} not found.",
        status=400, param="previous_response_id", code="previous_response_not_found",
    )  # fmt: skip


def unfinished(id: str, status: str) -> InvalidRequest:
    """A previous response that has no answer to go on from."""
    return InvalidRequest(
        f"Previous response with id {shown(id)} can't be continued: its status is {status}.",
        status=400, param="previous_response_id", code="previous_response_not_completed",
    )  # fmt: skip


def no_conversation(id: str) -> InvalidRequest:
    """A conversation that is not there, or another key's."""
    return InvalidRequest(f"Conversation with id {shown(id)} not found.", status=404)


def no_item(id: str, where: str | None = None) -> InvalidRequest:
    """An item that is not there."""
    return InvalidRequest(f"Item with id {shown(id)} not found.", status=404, param=where)


def too_long(what: str, param: str) -> InvalidRequest:
    """State that has grown beyond what is sent again with each request."""
    return InvalidRequest(what, status=400, param=param, code="context_length_exceeded")


def invalid(what: str, param: str | None = None) -> InvalidRequest:
    """Anything else that the client can mend."""
    return InvalidRequest(what, status=400, param=param)


def no_store(*, param: str) -> InvalidRequest:
    """Something that needs a store, where the operator has configured none."""
    return invalid(f"`{param}` needs a history store, and this server has none.", param)
