"""Message objects of other libraries, recognised by their classes and without importing any.

A class is known by the module that it, or a class it is derived from, was defined in. What an
object answers to is never asked: mocks and proxies answer to everything.
"""

from __future__ import annotations

from typing import Any

from dragoman.model.messages import Message
from dragoman.wire.inputs.peer_objects import read_peer_object
from dragoman.wire.inputs.sdk_objects import read_sdk_object


def read_object(
    value: object,
) -> dict[str, Any] | list[dict[str, Any]] | Message | list[Message] | None:
    """What an object of a known library says; None for an object of none.

    Objects of the vendors' SDKs become the wire's own dicts, to be decoded together with their
    neighbours; whole responses and the messages of LangChain, pydantic-ai and LiteLLM become
    messages. Raises `InvalidInputError`, naming the type, where the object can't be read.
    """
    if isinstance(value, type):
        return None
    found = read_peer_object(value)
    return found if found is not None else read_sdk_object(value)
