"""The anthropic SDK."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from tests.gateway.kept_clients import kept
from tests.gateway.matrix.conversation import Called, Conversation, Counted, Seen


@kept
def _sdk(url: str) -> Any:
    import anthropic

    return anthropic.Anthropic(base_url=url, api_key="none", max_retries=0)


class AnthropicMessages(Conversation):
    """`client.messages`, with its helpers for streams and structured output."""

    name = "anthropic"
    module = "anthropic"
    front = "anthropic"
    embeds = False

    def __init__(self, url: str, model: str) -> None:
        super().__init__(url, model)
        self.turns: list[Any] = []
        self._sdk = _sdk(url)

    def say(self, text: str, image: bytes | None = None) -> None:
        """Add a user message."""
        content: list[Any] = [{"type": "text", "text": text}]
        if image is not None:
            data = base64.b64encode(image).decode()
            source = {"type": "base64", "media_type": "image/png", "data": data}
            content.append({"type": "image", "source": source})
        self.turns.append({"role": "user", "content": content})

    def give(self, results: Sequence[tuple[Called, str]]) -> None:
        """Add the results of tool calls."""
        content = [
            {"type": "tool_result", "tool_use_id": called.id, "content": text}
            for called, text in results
        ]
        self.turns.append({"role": "user", "content": content})

    def _fields(self) -> dict[str, Any]:
        fields: dict[str, Any] = {
            "model": self.model,
            "max_tokens": 4096,
            "messages": self.turns,
        }
        if self.tools:
            fields["tools"] = [
                {
                    "name": tool.name,
                    "description": tool.description,
                    "input_schema": dict(tool.parameters),
                }
                for tool in self.tools
            ]
        if self.thinks:
            fields["thinking"] = {"type": "enabled", "budget_tokens": 2048}
        return fields

    def answer(self, *, stream: bool) -> Seen:
        """Request the model's response."""
        if stream:
            done = self._streamed(**self._fields())
        else:
            done = self._sdk.messages.create(**self._fields())
        self.turns.append({"role": "assistant", "content": done.content})
        blocks = done.content
        return Seen(
            "".join(block.text for block in blocks if block.type == "text"),
            "".join(block.thinking for block in blocks if block.type == "thinking"),
            tuple(
                Called(block.id, block.name, block.input)
                for block in blocks
                if block.type == "tool_use"
            ),
            _counted(done.usage),
        )

    def _streamed(self, **fields: Any) -> Any:
        with self._sdk.messages.stream(**fields) as events:
            done = events.get_final_message()
        assert done.stop_reason
        return done

    def parse(self, kind: type[BaseModel], *, stream: bool) -> BaseModel:
        """Request structured output."""
        fields = {**self._fields(), "output_format": kind}
        done = self._streamed(**fields) if stream else self._sdk.messages.parse(**fields)
        parsed: BaseModel = done.parsed_output
        return parsed

    def failures(self) -> Mapping[int, type[Exception]]:
        """The SDK's exception classes, by status."""
        import anthropic

        return {
            400: anthropic.BadRequestError,
            401: anthropic.AuthenticationError,
            404: anthropic.NotFoundError,
            429: anthropic.RateLimitError,
            500: anthropic.InternalServerError,
            529: anthropic.OverloadedError,
        }

    def broken(self) -> tuple[type[Exception], ...]:
        """The exceptions that it raises if a stream breaks off."""
        import anthropic

        return (anthropic.APIError,)

    def status(self, error: Any) -> int | None:
        """The HTTP status of an error."""
        return int(error.status_code)


def _counted(usage: Any) -> Counted:
    cached = usage.cache_read_input_tokens or 0
    written = usage.cache_creation_input_tokens or 0
    details = usage.output_tokens_details
    thinking = None if details is None else details.thinking_tokens
    return Counted(usage.input_tokens + cached + written, usage.output_tokens, cached, thinking)
