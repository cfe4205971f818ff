"""The groq SDK: OpenAI Chat under Groq's path, without helpers for streams or structured output."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from tests.gateway.kept_clients import kept
from tests.gateway.matrix.chat_forms import calls_in, merged, thinking_in
from tests.gateway.matrix.conversation import Seen
from tests.gateway.matrix.openai_chat_sdk import OpenAIChat, counted


@kept
def _sdk(url: str) -> Any:
    import groq

    return groq.Groq(base_url=url, api_key="none", max_retries=0)


class Groq(OpenAIChat):
    """`client.chat.completions`."""

    name = "groq"
    module = "groq"
    embeds = False

    def __init__(self, url: str, model: str) -> None:
        super().__init__(url, model)
        self._sdk = _sdk(url)

    def answer(self, *, stream: bool) -> Seen:
        """Request the model's response."""
        message, usage = self._asked(stream=stream)
        self.turns.append(message)
        text = message.get("content") or ""
        return Seen(text, thinking_in(message), calls_in(message), counted(usage))

    def _asked(self, *, stream: bool, **more: Any) -> tuple[dict[str, Any], Any]:
        completions, fields = self._sdk.chat.completions, {**self._fields(), **more}
        if not stream:
            done = completions.create(**fields)
            return done.choices[0].message.model_dump(exclude_none=True), done.usage
        options = {"stream_options": {"include_usage": True}}
        chunks = list(completions.create(**fields, stream=True, extra_body=options))
        choices = [choice for chunk in chunks for choice in chunk.choices]
        assert choices[-1].finish_reason
        usage = [chunk.usage for chunk in chunks if chunk.usage]
        deltas = [choice.delta.model_dump(exclude_none=True) for choice in choices]
        return merged(deltas), usage[-1] if usage else None

    def parse(self, kind: type[BaseModel], *, stream: bool) -> BaseModel:
        """Request structured output."""
        form = {"name": kind.__name__, "schema": _closed(kind), "strict": True}
        asked = {"response_format": {"type": "json_schema", "json_schema": form}}
        message, _ = self._asked(stream=stream, **asked)
        return kind.model_validate_json(message["content"])

    def failures(self) -> Mapping[int, type[Exception]]:
        """The SDK's exception classes, by status."""
        import groq

        return {
            400: groq.BadRequestError,
            401: groq.AuthenticationError,
            404: groq.NotFoundError,
            429: groq.RateLimitError,
            500: groq.InternalServerError,
            529: groq.InternalServerError,
        }

    def broken(self) -> tuple[type[Exception], ...]:
        """The exceptions that it raises if a stream breaks off."""
        import groq

        return (groq.APIError,)


def _closed(kind: type[BaseModel]) -> dict[str, Any]:
    """The schema in the form that strict mode requires."""
    schema = kind.model_json_schema()
    return {**schema, "additionalProperties": False}
