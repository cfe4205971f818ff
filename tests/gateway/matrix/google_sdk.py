"""The google-genai SDK."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from warnings import catch_warnings, simplefilter

from pydantic import BaseModel

from tests.gateway.kept_clients import kept
from tests.gateway.matrix.conversation import Called, Conversation, Counted, Seen


@kept
def _sdk(url: str) -> Any:
    with catch_warnings():
        simplefilter("ignore", DeprecationWarning)  # its source has an invalid escape sequence:
        simplefilter("ignore", SyntaxWarning)  # a SyntaxWarning in newer Pythons
        from google import genai

    return genai.Client(api_key="none", http_options={"base_url": url})


class GoogleGenAI(Conversation):
    """`client.chats`, which keeps the history itself, with one content per chunk of a stream."""

    name = "google-genai"
    module = "google.genai"
    front = "gemini"

    def __init__(self, url: str, model: str) -> None:
        super().__init__(url, model)
        self._sdk = _sdk(url)
        self._chat = self._sdk.chats.create(model=model)
        self._next: list[Any] = []

    def say(self, text: str, image: bytes | None = None) -> None:
        """Add a user message."""
        from google.genai import types

        self._next = [types.Part(text=text)]
        if image is not None:
            self._next.append(types.Part.from_bytes(data=image, mime_type="image/png"))

    def give(self, results: Sequence[tuple[Called, str]]) -> None:
        """Add the results of tool calls."""
        from google.genai import types

        self._next = [
            types.Part(
                function_response=types.FunctionResponse(
                    id=called.id, name=called.name, response={"result": text}
                )
            )
            for called, text in results
        ]

    def _config(self) -> dict[str, Any]:
        config: dict[str, Any] = {"automatic_function_calling": {"disable": True}}
        if self.tools:
            declared = [
                {
                    "name": tool.name,
                    "description": tool.description,
                    "parameters_json_schema": dict(tool.parameters),
                }
                for tool in self.tools
            ]
            config["tools"] = [{"function_declarations": declared}]
        if self.thinks:
            config["thinking_config"] = {"include_thoughts": True, "thinking_budget": 2048}
        return config

    def answer(self, *, stream: bool) -> Seen:
        """Request the model's response."""
        asked = {"message": self._next, "config": self._config()}
        if stream:
            chunks = list(self._chat.send_message_stream(**asked))
        else:
            chunks = [self._chat.send_message(**asked)]
        return _seen(chunks)

    def parse(self, kind: type[BaseModel], *, stream: bool) -> BaseModel:
        """Request structured output."""
        config = {"response_mime_type": "application/json", "response_schema": kind}
        asked = {"model": self.model, "contents": self._next, "config": config}
        if not stream:
            parsed: BaseModel = self._sdk.models.generate_content(**asked).parsed
            return parsed
        chunks = self._sdk.models.generate_content_stream(**asked)
        return kind.model_validate_json("".join(chunk.text or "" for chunk in chunks))

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """The embeddings of texts."""
        found = self._sdk.models.embed_content(model=self.model, contents=list(texts))
        return [each.values for each in found.embeddings]

    def failures(self) -> Mapping[int, type[Exception]]:
        """The SDK's exception classes, by status."""
        from google.genai import errors

        client = dict.fromkeys((400, 401, 404, 429), errors.ClientError)
        return {**client, 500: errors.ServerError, 529: errors.ServerError}

    def broken(self) -> tuple[type[Exception], ...]:
        """The exceptions that it raises if a stream breaks off."""
        from google.genai import errors

        return (errors.APIError,)

    def status(self, error: Any) -> int | None:
        """The HTTP status of an error."""
        return int(error.code)


def _seen(chunks: Iterable[Any]) -> Seen:
    parts: list[Any] = []
    usage, finish = None, None
    for chunk in chunks:
        [candidate] = chunk.candidates
        parts += (candidate.content and candidate.content.parts) or ()
        usage, finish = chunk.usage_metadata or usage, candidate.finish_reason or finish
    assert finish is not None
    called = [part.function_call for part in parts if part.function_call]
    return Seen(
        "".join(part.text for part in parts if part.text and not part.thought),
        "".join(part.text for part in parts if part.text and part.thought),
        tuple(Called(call.id, call.name, call.args or {}) for call in called),
        _counted(usage),
    )


def _counted(usage: Any) -> Counted:
    if usage is None:
        return Counted(None, None)
    thoughts = usage.thoughts_token_count or 0
    cached = usage.cached_content_token_count or 0
    output = (usage.candidates_token_count or 0) + thoughts
    return Counted(usage.prompt_token_count, output, cached, thoughts)
