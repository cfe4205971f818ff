"""Fields that Responses clients expect in responses: all of them, with their settings echoed.

The fields are those that OpenAI's types require, and those of the Open Responses specification,
which also requires most of the others, null or not.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.model import events
from dragoman.model.responses import Response
from dragoman.model.usage import Usage
from dragoman.wire.encoded import Encoded
from dragoman.wire.front import Front, FrontForm, message_id
from dragoman.wire.openai_responses.dialect import NAME, fields_for
from dragoman.wire.openai_responses.response import encode_finish, encode_usage
from dragoman.wire.openai_responses.stream_encoder import StreamEncoder
from dragoman.wire.openai_responses.stream_item_writers import Body, OutputWriter

_ECHOED_IF_SENT = ("conversation", "prompt", "prompt_cache_options", "prompt_cache_retention")
_NEVER_NULL = ("created_at", "id", "model", "object", "parallel_tool_calls", "status",
               "tool_choice", "tools")  # fmt: skip
_FUNCTION: Mapping[str, Any] = {"description": None, "parameters": None, "strict": None}
_RESPONSE_FIELDS = frozenset({"completed_at", "error", "incomplete_details", "usage"})
"""Fields that describe the response, not settings of the client."""
_WITH_STATUS = ("message", "function_call")
_UNKNOWN_FAILURE = {"code": "server_error", "message": "the model failed during its response"}
_MERGED = ("reasoning", "text")
_NO_TOKENS = Usage()


def _usual() -> Body:
    """The API's defaults."""
    return {
        "background": False,
        "completed_at": None,
        "error": None,
        "frequency_penalty": 0,
        "incomplete_details": None,
        "instructions": None,
        "max_output_tokens": None,
        "max_tool_calls": None,
        "metadata": {},
        "parallel_tool_calls": True,
        "presence_penalty": 0,
        "previous_response_id": None,
        "prompt_cache_key": None,
        "reasoning": {"effort": None, "summary": None},
        "safety_identifier": None,
        "service_tier": "default",
        "store": False,  # nothing is stored unless the client requests it
        "temperature": 1.0,
        "text": {"format": {"type": "text"}, "verbosity": "medium"},
        "tool_choice": "auto",
        "tools": [],
        "top_logprobs": 0,
        "top_p": 1.0,
        "truncation": "disabled",
        "usage": None,
        "user": None,
    }


def echoed(request: Mapping[str, Any]) -> Body:
    """The client's settings as a response echoes them, with the API's defaults."""
    body = _usual()
    known = filter(body.__contains__, request)
    for key in (*known, *filter(request.__contains__, _ECHOED_IF_SENT)):
        value = request[key]
        if value is None:
            continue
        if key in _MERGED:
            if not isinstance(value, Mapping):
                continue  # the client's mistake: a response has an object here
            value = {**body[key], **{k: v for k, v in value.items() if v is not None}}
        body[key] = value
    if isinstance(body["tools"], (list, tuple)):
        body["tools"] = [_tool(tool) for tool in body["tools"]]
    if isinstance(body.get("conversation"), str):
        body["conversation"] = {"id": body["conversation"]}
    return body


def with_all_counts(usage: Mapping[str, Any]) -> Body:
    """Fill in missing token counts."""
    counts = encode_usage(_NO_TOKENS)
    for key, value in usage.items():
        known = counts.get(key)
        if isinstance(known, dict) and isinstance(value, Mapping):
            counts[key] = {**known, **value}
        elif value is not None:
            counts[key] = value
    return counts


def complete_item(item: Body) -> Body:
    """Fill in the fields of an item that the specification requires."""
    content = item.get("content")
    if item.get("type") in _WITH_STATUS:
        item.setdefault("status", "completed")
    if item.get("type") == "message" and isinstance(content, (list, tuple)):
        item["content"] = [_part(part) for part in content]
    return item


def _part(part: Any) -> Any:
    if isinstance(part, Mapping) and part.get("type") == "output_text":
        return {**part, "annotations": part.get("annotations") or [],
                "logprobs": part.get("logprobs") or []}  # fmt: skip
    return part


def _tool(tool: Any) -> Any:
    """A tool as responses echo it: functions have all fields."""
    if not isinstance(tool, Mapping) or tool.get("type") != "function":
        return tool
    return {"type": "function", **_FUNCTION, **{k: v for k, v in tool.items() if v is not None}}


def complete(encoded: Encoded, response: Response, front: Front) -> None:
    """Fill in the fields that a response lacks."""
    body = encoded.body
    complete_body(body, front, echoed(front.asked), is_own=front.is_own_response(response))
    if body["status"] == "failed" and not isinstance(body["error"], Mapping):
        body["error"] = dict(_UNKNOWN_FAILURE)


def complete_body(body: Body, front: Front, echo: Body, *, is_own: bool) -> None:
    """Fill in the fields that a body lacks; those of a response of this dialect stay."""
    _complete_settings(body, front, echo, is_own=is_own)
    body["output"] = [
        complete_item(dict(item)) if isinstance(item, Mapping) else item for item in body["output"]
    ]
    _complete_end(body, front, is_own=is_own)


def _complete_settings(body: Body, front: Front, echo: Body, *, is_own: bool) -> None:
    """Fill in what doesn't depend on how the response ends."""
    told = dict(body)
    body.update(echo)
    for key in filter(told.__contains__, echo if is_own else _RESPONSE_FIELDS):
        body[key] = told[key]
    for key in _MERGED:
        if not isinstance(body[key], dict):
            body[key] = echo[key]
    body["reasoning"] = {"effort": None, "summary": None, **body["reasoning"]}
    if lacking := [key for key in _NEVER_NULL if body.get(key) in (None, "")]:
        stamp = {"object": "response", "status": "completed", "id": front.id,
                 "model": front.request.model or "", "created_at": int(front.began)}  # fmt: skip
        body.update((key, stamp.get(key, echo.get(key))) for key in lacking)
    created_at = body["created_at"]
    if not is_own and isinstance(created_at, float):
        body["created_at"] = int(created_at)


def _complete_end(body: Body, front: Front, *, is_own: bool) -> None:
    """Fill in token counts and the time of completion, and set the server's own fields."""
    usage = body["usage"]
    if usage is not None and isinstance(usage, Mapping):
        body["usage"] = with_all_counts(usage)
    if body["status"] == "completed" and body["completed_at"] is None and not is_own:
        body["completed_at"] = int(front.began + front.elapsed)
    body.update(front.response_fields)


class _FrontOutputWriter(OutputWriter):
    __slots__ = ()

    def _completed(self, item: Body) -> Body:
        return complete_item(item)


class FrontStreamEncoder(StreamEncoder):
    """Writes a stream whose lifecycle events have complete responses."""

    _output_writer = _FrontOutputWriter

    def __init__(self, front: Front) -> None:
        given = front.response_id
        super().__init__(None if given is None else message_id(given))
        self._front = front
        self._echo: Body | None = None  # the client's settings, set on first use
        self._begun_as: tuple[events.ResponseStart, Body, Body] | None = None

    def _body(self, end: events.ChoiceFinish | None) -> Body:
        start, front = self._start, self._front
        if self._echo is None:
            self._echo = echoed(front.asked)
        if NAME in start.extras or front.is_own(start.origin):
            body = super()._body(end)
            complete_body(body, front, self._echo, is_own=True)
        else:
            body = self._other_body(end, self._echo)
        if end is None:
            body["completed_at"] = None
        return body

    def _other_body(self, end: events.ChoiceFinish | None, echo: Body) -> Body:
        """The body of another dialect's response: at its end, only the end is encoded."""
        known, usage = self._begun_as, self._usage
        if known is None or known[0] is not self._start:
            told = self._encoded(None, None)
            whole = dict(told)
            _complete_settings(whole, self._front, echo, is_own=False)
            known = self._begun_as = (self._start, told, whole)
        _, told, whole = known
        if usage is None:
            body = dict(whole)
        else:
            body = {**told, "usage": None, **whole}
            body["usage"] = encode_usage(usage)
        if end is not None:
            body.update(encode_finish(end.finish, end.finish_raw, is_own=False))
        _complete_end(body, self._front, is_own=False)
        return body


def stream_error(body: Mapping[str, Any], status: int, message: str) -> events.StreamError:
    """The error of a failed response; its code takes the place of the HTTP status."""
    return events.StreamError(message, body["error"]["code"], status)


FRONT_FORM = FrontForm(
    id_prefix="resp_",
    has_time=True,
    complete=complete,
    stream_encoder=FrontStreamEncoder,
    stream_error=stream_error,
    state_fields=fields_for,
    says_failures=True,
    content=("output", b"[]"),
)
