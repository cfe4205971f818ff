"""OpenAI's legacy `/v1/completions`: prompts instead of messages, and text responses."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from dragoman.errors import InvalidRequest
from dragoman.model.frozen import freeze_mapping
from dragoman.model.requests import Request
from dragoman.model.responses import Response
from dragoman.wire.dialect import Body, Dialect
from dragoman.wire.encoded import Encoded
from dragoman.wire.front import Front, FrontForm
from dragoman.wire.json_values import is_list, is_object, parsed
from dragoman.wire.lane.flows import Delta
from dragoman.wire.losses import Loss
from dragoman.wire.openai_chat.dialect import NAME
from dragoman.wire.openai_chat.request import asks_for_usage
from dragoman.wire.openai_chat.response_front import FRONT_FORM
from dragoman.wire.openai_chat.response_front import complete as complete_chat
from dragoman.wire.openai_chat.stream_encoder import StreamEncoder
from dragoman.wire.prompt_front import PromptFront
from dragoman.wire.services import optional, positive, refuse

OWN = "openai-completions"
"""The extras key for fields that only completions have; every target reports them as lost."""
_OBJECT = "text_completion"
_COMPLETION_FIELDS = frozenset({"prompt", "suffix", "echo", "best_of", "logprobs", "messages"})
_FINISHES = frozenset({"stop", "length", "content_filter"})
_CALLS = frozenset({"tool_calls", "function_call"})
_TEXT_ONLY = "not supported by completions, which return text only"
_AS_TEXT = "a refusal is sent as text"

# --- requests


def decode_requests(speaker: Dialect, wire: Mapping[str, Any]) -> list[Request]:
    """Decode one request for each prompt, with the prompt as a user message.

    Fields without a chat equivalent (`suffix`, `best_of`) are kept in the extras.
    """
    settings = {key: value for key, value in wire.items() if key not in _COMPLETION_FIELDS}
    settings |= _logprob_settings(wire)
    special = _completion_extras(wire)
    requests: list[Request] = []
    for prompt in _prompts(wire.get("prompt")):
        messages = [{"role": "user", "content": prompt}]
        request = speaker.decode_request({**settings, "messages": messages})
        if special:
            extras = freeze_mapping({**request.extras, OWN: special}, "the wire")
            request = request.replace_unchecked(extras=extras)
        requests.append(request)
    return requests


def _prompts(given: Any) -> list[str]:
    if given is None:
        return [""]
    if isinstance(given, str):
        return [given]
    kinds = {*map(type, given)} if is_list(given) else set()
    if kinds == {str}:
        return list(given)
    if kinds and kinds <= {int, list}:
        msg = "prompts of token ids are not supported; send text"
        raise InvalidRequest(msg, status=400, param="prompt")
    return refuse("a string or a list of strings", "$.prompt", NAME)


def _logprob_settings(wire: Mapping[str, Any]) -> dict[str, Any]:
    """The chat settings for `logprobs`."""
    count = optional(wire, "logprobs", int, NAME)
    if count is None:
        return {}
    if wire.get("echo") is True:
        msg = "log probabilities of an echoed prompt are not supported"
        raise InvalidRequest(msg, status=400, param="logprobs")
    return {"logprobs": True, "top_logprobs": count}


def _completion_extras(wire: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that only completions have, if they are set."""
    found: dict[str, Any] = {}
    if suffix := optional(wire, "suffix", str, NAME):
        found["suffix"] = suffix
    best, choices = positive(wire, "best_of", NAME), positive(wire, "n", NAME)
    if best is not None and best > (choices or 1):
        found["best_of"] = best
    if "messages" in wire:
        found["messages"] = wire["messages"]
    return found


# --- responses


def encode_text(message: Mapping[str, Any], path: str, lose: Callable[[Loss], None]) -> str:
    """The text of a message or delta."""
    content, refusal = message.get("content"), message.get("refusal")
    for key, value in message.items():
        if key not in {"role", "content", "refusal"} and value:
            lose(Loss(f"{path}.{_PARTS.get(key, 'extras')}", _TEXT_ONLY))
    if isinstance(refusal, str) and refusal:
        lose(Loss(f"{path}.parts", _AS_TEXT))
    if content and not isinstance(content, str):
        lose(Loss(f"{path}.parts", _TEXT_ONLY))
    return "".join([text for text in (content, refusal) if isinstance(text, str)])


_PARTS = {"tool_calls": "tool_calls", "function_call": "tool_calls", "audio": "parts",
          "reasoning": "thinking", "reasoning_content": "thinking"}  # fmt: skip


def encode_finish(word: Any, path: str, lose: Callable[[Loss], None]) -> Any:
    """Convert a finish reason; completions have only three."""
    if word is None or (isinstance(word, str) and word in _FINISHES):
        return word
    if word not in _CALLS:
        lose(Loss(f"{path}.finish", "this finish reason has no equivalent"))
    return "stop"


def encode_logprobs(
    wire: Any, offset: int, path: str, lose: Callable[[Loss], None]
) -> dict[str, Any] | None:
    """Convert log probabilities; `offset` is where the text begins."""
    tokens = wire.get("content") if is_object(wire) else None
    if not is_list(tokens) or not all(map(_is_token, tokens)):
        if wire:
            lose(Loss(f"{path}.logprobs", "log probabilities in an unknown format are left out"))
        return None
    offsets: list[int] = []
    for token in tokens:
        offsets.append(offset)
        offset += len(token["token"])
    return {
        "tokens": [token["token"] for token in tokens],
        "token_logprobs": [token["logprob"] for token in tokens],
        "top_logprobs": [
            {other["token"]: other["logprob"] for other in token.get("top_logprobs") or ()}
            for token in tokens
        ],
        "text_offset": offsets,
    }


def _is_token(wire: Any) -> bool:
    others = (wire.get("top_logprobs") or []) if is_object(wire) else None
    if not is_list(others):
        return False
    return all(
        is_object(one)
        and isinstance(one.get("token"), str)
        and type(one.get("logprob")) in (int, float)
        for one in (wire, *others)
    )


class _ChoiceConverter:
    """Converts the choices of a chat to those of completions."""

    def __init__(self, front: CompletionsFront, lose: Callable[[Loss], None]) -> None:
        self._front = front
        self._lose = lose
        self._begun: set[int] = set()

    def has_begun(self, wire: Any) -> bool:
        """Whether a part of this choice was already written."""
        return is_object(wire) and wire.get("index") in self._begun

    def choice(self, wire: Any, key: str) -> Any:
        """Convert a choice or chunk, whose message is under `key`."""
        if not is_object(wire):
            return wire
        number = wire.get("index")
        number = number if type(number) is int else 0
        path = f"choices[{number}]"
        message = wire.get(key)
        fields = message if is_object(message) else {}
        echoed = self._echoed(number)
        left = {name: value for name, value in wire.items() if name != key}
        return {
            **left,
            "text": ("" if number in self._begun else echoed)
            + encode_text(fields, f"{path}.message", self._lose),
            "index": self._begin(number),
            "logprobs": encode_logprobs(wire.get("logprobs"), len(echoed), path, self._lose),
            "finish_reason": encode_finish(wire.get("finish_reason"), path, self._lose),
        }

    def _begin(self, number: int) -> int:
        self._begun.add(number)
        return number

    def _echoed(self, number: int) -> str:
        """The prompt, if the client requests an echo."""
        front = self._front
        place = number // front.choices
        if not front.echoes or not 0 <= place < len(front.requests):
            return ""
        return front.requests[place].messages[0].text


def complete(encoded: Encoded, response: Response, front: Front) -> None:
    """Convert the completed chat response to a completion."""
    complete_chat(encoded, response, front)
    lost: list[Loss] = []
    assert isinstance(front, CompletionsFront)  # noqa: S101 - only it has this form
    texts = _ChoiceConverter(front, lost.append)
    choices = [texts.choice(choice, "message") for choice in encoded.body["choices"]]
    encoded.body = {**encoded.body, "object": _OBJECT, "choices": choices}
    encoded.losses += tuple(dict.fromkeys(lost))


class CompletionStreamEncoder(StreamEncoder):
    """Writes a stream of completions."""

    def __init__(self, front: Front) -> None:
        super().__init__(include_usage=asks_for_usage(front.request))
        assert isinstance(front, CompletionsFront)  # noqa: S101 - only it has this form
        self._head["object"] = _OBJECT
        self._texts = _ChoiceConverter(front, lambda loss: self._lose(loss.path, loss.reason))

    def _written(self, choices: list[Any], usage: Any = None) -> bytes:
        """Encode a chunk; empty if it has nothing that a completion supports."""
        has_begun = bool(choices) and all(map(self._texts.has_begun, choices))
        texts = [self._texts.choice(each, "delta") for each in choices]
        if has_begun and not any(text["text"] or text["finish_reason"] for text in texts):
            return b""
        return super()._written(texts, usage)

    def flow_after(self, event: Delta) -> None:
        """None, since a chunk depends on those before it."""

    def _opaque(self, payload: Mapping[str, Any]) -> None:  # noqa: ARG002 - it belongs to a chat
        return None


_FORM = FRONT_FORM._replace(
    id_prefix="cmpl-", complete=complete, stream_encoder=CompletionStreamEncoder
)


class CompletionsFront(PromptFront):
    """Encodes the responses to a request of `/v1/completions`."""

    def __init__(
        self,
        speaker: Dialect,
        body: Body,
        *,
        path: str | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Decode the request body."""
        wire = parsed(body, NAME)
        self.echoes = optional(wire, "echo", bool, NAME) or False
        """Whether the client requests each prompt before its response."""
        super().__init__(speaker, decode_requests(speaker, wire), path=path, clock=clock)

    def _form(self) -> FrontForm:
        return _FORM


PROMPT_FRONT = CompletionsFront
