"""Sampling: a server requests an answer from our model."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from inspect import isawaitable
from math import inf
from typing import Any, Literal

import mcp_types as types

from dragoman.errors import DragomanError, InvalidInputError
from dragoman.mcp.content import blocks_of, parts_of
from dragoman.model.messages import Message
from dragoman.model.parts import Text
from dragoman.model.requests import Request
from dragoman.model.roles import Role
from dragoman.model.usage import FinishReason
from dragoman.providers.provider import Provider
from dragoman.transport.model import Model, open_model

ApproveSampling = Callable[[Request], bool | Awaitable[bool]]

_REFUSED = -1  # as in the specification's example
_FAILED = types.INTERNAL_ERROR
_STOPS = {
    FinishReason.STOP: "endTurn",
    FinishReason.LENGTH: "maxTokens",
}


class Sampling:
    """Lets a server use your model: `MCPServer.stdio(…, sampling=Sampling(model, approve))`.

    `approve` is called before each request, with the `Request` that would be sent; True allows all
    requests, at your expense. Answers have at most `max_tokens` tokens, and a server gets at most
    `max_requests` of them. It can't choose the model, nor give it tools.
    """

    def __init__(
        self,
        model: str | Provider | Model,
        approve: ApproveSampling | Literal[True],
        *,
        max_tokens: int = 4_096,
        max_requests: int | None = 100,
    ) -> None:
        given: object = approve
        if given is not True and not callable(given):
            msg = "approve of Sampling must be True or a function that takes the request"
            raise InvalidInputError(msg)
        self.model: Model = open_model(model)
        self._owns_model = self.model is not model
        self._approve = approve
        self._max_tokens = max_tokens
        self._left = inf if max_requests is None else max_requests

    def __repr__(self) -> str:
        return f"Sampling({self.model.name})"

    async def answer(
        self, params: types.CreateMessageRequestParams
    ) -> types.CreateMessageResult | types.ErrorData:
        """The model's answer; or an error without details of what went wrong here."""
        if self._left <= 0:
            return types.ErrorData(code=_REFUSED, message="No more sampling requests are allowed")
        self._left -= 1  # now: others may come while this one waits for approval
        is_sent = False
        try:
            request = self._request(params)
            if not await self._is_approved(request):
                return types.ErrorData(code=_REFUSED, message="User rejected sampling request")
            is_sent = True
            response = await self.model.send(request)
            blocks = blocks_of(response.message.parts)
        except DragomanError as error:
            message = f"The model request failed ({type(error).__name__})"
            return types.ErrorData(code=_FAILED, message=message)
        finally:
            if not is_sent:
                self._left += 1
        text = "".join(each.text for each in blocks if isinstance(each, types.TextContent))
        others = [each for each in blocks if not isinstance(each, types.TextContent)]
        first = others[0] if others and not text else types.TextContent(type="text", text=text)
        stop = _STOPS.get(response.finish) if response.finish is not None else None
        name = response.model or self.model.name
        return types.CreateMessageResult(
            role="assistant", content=first, model=name, stop_reason=stop
        )

    async def _is_approved(self, request: Request) -> bool:
        if isinstance(self._approve, bool):
            return self._approve
        answer = self._approve(request)
        return (await answer if isawaitable(answer) else answer) is True

    def _request(self, params: types.CreateMessageRequestParams) -> Request:
        messages = tuple(_message(each) for each in params.messages)
        system = (Text(params.system_prompt),) if params.system_prompt else ()
        settings: dict[str, Any] = {"max_tokens": max(1, min(params.max_tokens, self._max_tokens))}
        if params.temperature is not None:
            settings["temperature"] = params.temperature
        if params.stop_sequences:
            settings["stop"] = tuple(params.stop_sequences)
        return Request(system=system, messages=messages).with_settings(**settings)

    async def close(self) -> None:
        """Close the model, unless it was passed in open."""
        if self._owns_model:
            await self.model.close()


def _message(given: types.SamplingMessage) -> Message:
    blocks = given.content if isinstance(given.content, list) else [given.content]
    parts = [part for block in blocks for part in parts_of(block)]
    role = Role.ASSISTANT if given.role == "assistant" else Role.USER
    return Message(role, parts)
