"""The mistralai SDK: Mistral's variant of OpenAI Chat; its types drop unknown fields."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

from pydantic import BaseModel, ValidationError

from tests.gateway.kept_clients import kept
from tests.gateway.matrix.chat_forms import calls_in, merged
from tests.gateway.matrix.conversation import Called, Conversation, Counted, Seen
from tests.gateway.matrix.openai_chat_sdk import OpenAIChat


@kept
def _sdk(url: str) -> Any:
    return import_module("mistralai.client").Mistral(api_key="none", server_url=url)


class MistralAI(OpenAIChat):
    """`client.chat`."""

    name = "mistralai"
    module = "mistralai.client"

    def __init__(self, url: str, model: str) -> None:
        Conversation.__init__(self, url, model)
        self.turns = []
        self._sdk = _sdk(url)

    def give(self, results: Sequence[tuple[Called, str]]) -> None:
        """Add the results of tool calls."""
        self.turns += [
            {"role": "tool", "tool_call_id": called.id, "name": called.name, "content": text}
            for called, text in results
        ]

    def answer(self, *, stream: bool) -> Seen:
        """Request the model's response."""
        message, usage = self._asked(stream=stream)
        self.turns.append(message)
        text, thinking = _read(message.get("content") or "")
        return Seen(text, thinking, calls_in(message), _counted(usage))

    def _asked(self, *, stream: bool, **more: Any) -> tuple[dict[str, Any], Any]:
        fields = {**self._fields(), **more}
        if not stream:
            done = self._sdk.chat.complete(**fields)
            return _dumped(done.choices[0].message), done.usage
        with self._sdk.chat.stream(**fields) as events:
            chunks = [event.data for event in events]
        choices = [choice for chunk in chunks for choice in chunk.choices]
        assert choices[-1].finish_reason
        usage = [chunk.usage for chunk in chunks if chunk.usage]
        message = _merged([_dumped(choice.delta) for choice in choices])
        return message, usage[-1] if usage else None

    def parse(self, kind: type[BaseModel], *, stream: bool) -> BaseModel:
        """Request structured output."""
        if not stream:
            done = self._sdk.chat.parse(kind, **self._fields())
            parsed: BaseModel = done.choices[0].message.parsed
            return parsed
        with self._sdk.chat.parse_stream(kind, **self._fields()) as events:
            deltas = [_dumped(each.data.choices[0].delta) for each in events if each.data.choices]
        return kind.model_validate_json(merged(deltas)["content"])

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """The embeddings of texts."""
        found = self._sdk.embeddings.create(model=self.model, inputs=list(texts))
        return [each.embedding for each in found.data]

    def failures(self) -> Mapping[int, type[Exception]]:
        """The SDK's exception classes, by status."""
        errors = import_module("mistralai.client.errors")
        return dict.fromkeys((400, 401, 404, 429, 500, 529), errors.SDKError)

    def broken(self) -> tuple[type[Exception], ...]:
        """The exceptions that it raises if a stream breaks off."""
        errors = import_module("mistralai.client.errors")
        return errors.SDKError, errors.ResponseValidationError, ValidationError

    def retry_after(self, error: Any) -> str | None:
        """The `Retry-After` of an error."""
        found: str | None = error.headers.get("retry-after")
        return found


def _merged(deltas: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Join the deltas; neighbouring chunks of one type are one chunk."""
    contents = [delta.pop("content") for delta in deltas if "content" in delta]
    message = merged(deltas)
    if all(isinstance(content, str) for content in contents):
        return {**message, "content": "".join(contents)} if contents else message
    chunks: list[dict[str, Any]] = []
    for content in contents:
        for chunk in [{"type": "text", "text": content}] if isinstance(content, str) else content:
            _add_chunk(chunks, chunk)
    return {**message, "content": chunks}


def _add_chunk(chunks: list[dict[str, Any]], chunk: dict[str, Any]) -> None:
    last = chunks[-1] if chunks else {}
    is_more = last.get("type") == chunk["type"] and "signature" not in last
    if is_more and chunk["type"] == "text":
        last["text"] += chunk["text"]
    elif is_more and chunk["type"] == "thinking":
        last["thinking"] += chunk["thinking"]
        last.update({key: chunk[key] for key in chunk if key not in ("type", "thinking")})
    else:
        chunks.append(chunk)


def _read(content: str | list[dict[str, Any]]) -> tuple[str, str]:
    """The text and the thinking of a message."""
    if isinstance(content, str):
        return content, ""
    thoughts = [chunk["thinking"] for chunk in content if chunk["type"] == "thinking"]
    text = "".join(chunk["text"] for chunk in content if chunk["type"] == "text")
    return text, "\n".join("".join(piece["text"] for piece in pieces) for pieces in thoughts)


def _dumped(message: Any) -> dict[str, Any]:
    fields: dict[str, Any] = message.model_dump(exclude_none=True, by_alias=True)
    return {key: value for key, value in fields.items() if value}


def _counted(usage: Any) -> Counted:
    if usage is None:
        return Counted(None, None)
    more = usage.model_extra or {}  # fields that its types don't have
    cached = more.get("prompt_tokens_details", {}).get("cached_tokens")
    reasoning = more.get("completion_tokens_details", {}).get("reasoning_tokens")
    return Counted(usage.prompt_tokens, usage.completion_tokens, cached, reasoning)
