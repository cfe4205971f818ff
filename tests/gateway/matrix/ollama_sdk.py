"""The ollama SDK."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from tests.gateway.kept_clients import kept
from tests.gateway.matrix.conversation import Called, Conversation, Counted, Seen


@kept
def _sdk(url: str) -> Any:
    import ollama

    return ollama.Client(host=url)


class Ollama(Conversation):
    """`client.chat`; its types have no call ids, and no field for sealed state."""

    name = "ollama"
    module = "ollama"
    front = "ollama"

    def __init__(self, url: str, model: str) -> None:
        super().__init__(url, model)
        self.turns: list[Any] = []
        self._sdk = _sdk(url)

    def say(self, text: str, image: bytes | None = None) -> None:
        """Add a user message."""
        turn: dict[str, Any] = {"role": "user", "content": text}
        if image is not None:
            turn["images"] = [image]
        self.turns.append(turn)

    def give(self, results: Sequence[tuple[Called, str]]) -> None:
        """Add the results of tool calls."""
        self.turns += [
            {"role": "tool", "tool_name": called.name, "content": text} for called, text in results
        ]

    def _asked(self, *, stream: bool, **more: Any) -> list[Any]:
        tools = [
            {
                "type": "function",
                "function": {
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": dict(tool.parameters),
                },
            }
            for tool in self.tools
        ]
        fields = {"model": self.model, "messages": self.turns, "tools": tools or None, **more}
        if self.thinks:
            fields["think"] = True
        found = self._sdk.chat(stream=stream, **fields)
        chunks = list(found) if stream else [found]
        assert chunks[-1].done
        return chunks

    def answer(self, *, stream: bool) -> Seen:
        """Request the model's response."""
        chunks = self._asked(stream=stream)
        messages = [chunk.message for chunk in chunks]
        text = "".join(each.content or "" for each in messages)
        thinking = "".join(each.thinking or "" for each in messages)
        calls = [call for each in messages for call in each.tool_calls or ()]
        self.turns.append(
            {"role": "assistant", "content": text, "thinking": thinking or None,
             "tool_calls": calls or None}
        )  # fmt: skip
        seen = tuple(Called(None, each.function.name, each.function.arguments) for each in calls)
        return Seen(text, thinking, seen, _counted(chunks))

    def parse(self, kind: type[BaseModel], *, stream: bool) -> BaseModel:
        """Request structured output."""
        chunks = self._asked(stream=stream, format=kind.model_json_schema())
        return kind.model_validate_json("".join(each.message.content or "" for each in chunks))

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """The embeddings of texts."""
        found = self._sdk.embed(model=self.model, input=list(texts)).embeddings
        return [list(vector) for vector in found]

    def failures(self) -> Mapping[int, type[Exception]]:
        """The SDK's exception classes, by status."""
        import ollama

        return dict.fromkeys((400, 401, 404, 429, 500, 529), ollama.ResponseError)

    def broken(self) -> tuple[type[Exception], ...]:
        """The exceptions that it raises if a stream breaks off."""
        import ollama

        return (ollama.ResponseError,)

    def status(self, error: Any) -> int | None:
        """The HTTP status of an error."""
        return int(error.status_code)

    def retry_after(self, error: Any) -> str | None:
        """The `Retry-After` of an error."""
        del error  # it has only a message and a status
        return None


def _counted(chunks: Iterable[Any]) -> Counted:
    *_, last = chunks
    return Counted(last.prompt_eval_count, last.eval_count)
