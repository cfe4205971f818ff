"""The openai SDK on Chat Completions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from tests.gateway.kept_clients import kept
from tests.gateway.matrix.chat_forms import (
    calls_in,
    chat_tools,
    result_turns,
    thinking_in,
    user_turn,
)
from tests.gateway.matrix.conversation import Called, Conversation, Counted, Seen


@kept
def sdk(url: str) -> Any:
    """One client for all tests: creating one takes as long as several requests."""
    import openai

    return openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0)


def openai_failures() -> dict[int, type[Exception]]:
    """The SDK's exception classes, by status."""
    import openai

    return {
        400: openai.BadRequestError,
        401: openai.AuthenticationError,
        404: openai.NotFoundError,
        429: openai.RateLimitError,
        500: openai.InternalServerError,
        529: openai.InternalServerError,
    }


class OpenAIChat(Conversation):
    """`client.chat.completions`, with its helpers for streams and structured output."""

    name = "openai chat"
    module = "openai"
    front = "openai-chat"

    def __init__(self, url: str, model: str) -> None:
        super().__init__(url, model)
        self.turns: list[Any] = []
        self._sdk = sdk(url)

    def say(self, text: str, image: bytes | None = None) -> None:
        """Add a user message."""
        self.turns.append(user_turn(text, image))

    def give(self, results: Sequence[tuple[Called, str]]) -> None:
        """Add the results of tool calls."""
        self.turns += result_turns(results)

    def _fields(self) -> dict[str, Any]:
        fields: dict[str, Any] = {"model": self.model, "messages": self.turns}
        if self.tools:
            fields["tools"] = chat_tools(self.tools)
        if self.thinks:
            fields["reasoning_effort"] = "medium"
        return fields

    def answer(self, *, stream: bool) -> Seen:
        """Request the model's response."""
        completions, fields = self._sdk.chat.completions, self._fields()
        done = self._streamed(**fields) if stream else completions.create(**fields)
        message = done.choices[0].message.model_dump(exclude_none=True)
        message.pop("parsed", None)
        message["role"] = "assistant"  # the helper joins the role of each OpenRouter chunk
        for call in message.get("tool_calls", ()):
            call["function"].pop("parsed_arguments", None)
        self.turns.append(message)
        text = message.get("content") or ""
        return Seen(text, thinking_in(message), calls_in(message), counted(done.usage))

    def _streamed(self, **fields: Any) -> Any:
        fields["stream_options"] = {"include_usage": True}
        with self._sdk.chat.completions.stream(**fields) as events:
            for _ in events:
                pass
            done = events.get_final_completion()
        assert done.choices[0].finish_reason
        return done

    def parse(self, kind: type[BaseModel], *, stream: bool) -> BaseModel:
        """Request structured output."""
        fields = {**self._fields(), "response_format": kind}
        completions = self._sdk.chat.completions
        done = self._streamed(**fields) if stream else completions.parse(**fields)
        parsed: BaseModel = done.choices[0].message.parsed
        return parsed

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """The embeddings of texts."""
        found = self._sdk.embeddings.create(model=self.model, input=list(texts))
        return [each.embedding for each in found.data]

    def failures(self) -> Mapping[int, type[Exception]]:
        """The SDK's exception classes, by status."""
        return openai_failures()

    def broken(self) -> tuple[type[Exception], ...]:
        """The exceptions that it raises if a stream breaks off."""
        import openai

        return (openai.APIError,)

    def status(self, error: Any) -> int | None:
        """The HTTP status of an error."""
        return int(error.status_code)


def counted(usage: Any) -> Counted:
    """The token counts of OpenAI's and Groq's SDKs."""
    if usage is None:
        return Counted(None, None)
    cached = getattr(usage.prompt_tokens_details, "cached_tokens", None)
    reasoning = getattr(usage.completion_tokens_details, "reasoning_tokens", None)
    return Counted(usage.prompt_tokens, usage.completion_tokens, cached, reasoning)
