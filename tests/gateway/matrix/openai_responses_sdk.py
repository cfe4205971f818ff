"""The openai SDK on Responses."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from tests.gateway.matrix.conversation import Called, Conversation, Counted, Seen
from tests.gateway.matrix.openai_chat_sdk import openai_failures, sdk


class OpenAIResponses(Conversation):
    """`client.responses`, without state on the server."""

    name = "openai responses"
    module = "openai"
    front = "openai-responses"
    embeds = False

    def __init__(self, url: str, model: str) -> None:
        super().__init__(url, model)
        self.turns: list[Any] = []
        self._sdk = sdk(url)

    def say(self, text: str, image: bytes | None = None) -> None:
        """Add a user message."""
        content: Any = text
        if image is not None:
            url = f"data:image/png;base64,{base64.b64encode(image).decode()}"
            picture = {"type": "input_image", "image_url": url, "detail": "auto"}
            content = [{"type": "input_text", "text": text}, picture]
        self.turns.append({"role": "user", "content": content})

    def give(self, results: Sequence[tuple[Called, str]]) -> None:
        """Add the results of tool calls."""
        self.turns += [
            {"type": "function_call_output", "call_id": called.id, "output": text}
            for called, text in results
        ]

    def _fields(self) -> dict[str, Any]:
        fields: dict[str, Any] = {"model": self.model, "input": self.turns, "store": False}
        if self.tools:
            fields["tools"] = [
                {
                    "type": "function",
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": dict(tool.parameters),
                    "strict": True,
                }
                for tool in self.tools
            ]
        if self.thinks:
            fields["reasoning"] = {"effort": "medium", "summary": "auto"}
            fields["include"] = ["reasoning.encrypted_content"]
        return fields

    def answer(self, *, stream: bool) -> Seen:
        """Request the model's response."""
        if stream:
            done = self._streamed(**self._fields())
        else:
            done = self._sdk.responses.create(**self._fields())
        assert done.status == "completed"
        self.turns += [_as_sent(item) for item in done.output]
        calls = [item for item in done.output if item.type == "function_call"]
        thoughts = [item for item in done.output if item.type == "reasoning"]
        return Seen(
            done.output_text,
            "".join(each.text for item in thoughts for each in item.summary or item.content or ()),
            tuple(Called(call.call_id, call.name, json.loads(call.arguments)) for call in calls),
            _counted(done.usage),
        )

    def _streamed(self, **fields: Any) -> Any:
        with self._sdk.responses.stream(**fields) as events:
            return events.get_final_response()

    def parse(self, kind: type[BaseModel], *, stream: bool) -> BaseModel:
        """Request structured output."""
        fields = {**self._fields(), "text_format": kind}
        done = self._streamed(**fields) if stream else self._sdk.responses.parse(**fields)
        parsed: BaseModel = done.output_parsed
        return parsed

    def failures(self) -> Mapping[int, type[Exception]]:
        """The SDK's exception classes, by status."""
        return openai_failures()

    def broken(self) -> tuple[type[Exception], ...]:
        """The exceptions that it raises if a stream breaks off."""
        import openai

        return openai.APIError, RuntimeError  # raised if no `response.completed` arrived

    def status(self, error: Any) -> int | None:
        """The HTTP status of an error."""
        return int(error.status_code)


def _as_sent(item: Any) -> Any:
    """An output item as it is sent back: without the fields that the parsing helper adds."""
    fields = item.model_dump(exclude_unset=True)
    fields.pop("parsed_arguments", None)
    for part in fields.get("content") or ():
        part.pop("parsed", None)
    return fields


def _counted(usage: Any) -> Counted:
    return Counted(
        usage.input_tokens,
        usage.output_tokens,
        usage.input_tokens_details.cached_tokens,
        usage.output_tokens_details.reasoning_tokens,
    )
