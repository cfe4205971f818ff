"""The results of batches: reads models and usage from them while they pass through.

OpenAI's results are a file of JSON lines, Anthropic's have an endpoint of their own, and Gemini's
are a file or part of the operation. A file that has something else is recognised by its first line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import msgspec
from msgspec import Raw, Struct

from dragoman.gateway.endpoints import ANTHROPIC, CHAT, GEMINI, RESPONSES
from dragoman.gateway.response_summary import summary_of
from dragoman.wire.dialect import dialect
from dragoman.wire.lane.plain import Summary

MAX_LINE = 16 * 1024 * 1024
"""Bytes of a result; the usage of a longer one is unknown."""
MAX_OPERATION = 64 * 1024 * 1024
"""Bytes of an operation with its results (Gemini); the usage of a longer one is unknown."""
_HEAD = 4096
_MARKS = (b'"custom_id"', b'"key"', b'"response"')
_UNKNOWN = Summary(None, None)
_NULL = Raw(b"null")
_RESULTS = b'"inlinedResponses"'
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")
_FAILURES = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
_encode = msgspec.json.Encoder().encode
_split = msgspec.json.Decoder(dict[str, Raw]).decode
ReadT = TypeVar("ReadT")
Found = Callable[[str, Summary, int], None]
"""Called with the name of a batch, the summary of one of its results, and the result's size."""


# --- lines of results


class _OpenAIResponse(Struct, gc=False):
    body: Raw = _NULL


class _OpenAIResult(Struct, gc=False):
    custom_id: str
    response: _OpenAIResponse | None


class _AnthropicMessage(Struct, gc=False):
    type: str
    message: Raw = _NULL


class _AnthropicResult(Struct, gc=False):
    custom_id: str
    result: _AnthropicMessage


class _GeminiResult(Struct, gc=False):
    key: str
    response: Raw = _NULL
    error: Raw = _NULL


_openai_result = msgspec.json.Decoder(_OpenAIResult).decode
_anthropic_result = msgspec.json.Decoder(_AnthropicResult).decode
_gemini_result = msgspec.json.Decoder(_GeminiResult).decode


def _openai(line: bytes) -> Summary | None:
    response = _openai_result(line).response
    body = _NULL if response is None else response.body
    fields = _fields(body)
    if bytes(fields.get("object", _NULL)) == b'"response"':
        return _summary(RESPONSES, body)
    # Embeddings and completions count as chats do.
    kept: dict[str, Any] = {name: fields[name] for name in ("model", "usage") if name in fields}
    if "usage" not in kept:
        return _UNKNOWN if _CONTENT.intersection(fields) else None
    return _summary(CHAT, Raw(_encode({**kept, "choices": []})))


def _anthropic(line: bytes) -> Summary | None:
    return _summary(ANTHROPIC, _anthropic_result(line).result.message)


def _gemini(line: bytes) -> Summary | None:
    response = _gemini_result(line).response
    if "embedding" in _fields(response):
        return None  # its size would say nothing about its tokens
    return _summary(GEMINI, response)


def _summary(name: str, response: Raw) -> Summary | None:
    body = bytes(response)
    return None if body == b"null" else summary_of(dialect(name), body) or _UNKNOWN


def _fields(body: Raw) -> dict[str, Raw]:
    try:
        return _split(body)
    except _FAILURES:
        return {}


_CONTENT = frozenset({"choices", "data", "output"})
"""Fields of responses; errors have none of them."""
_READ = {CHAT: _openai, ANTHROPIC: _anthropic, GEMINI: _gemini}
"""Read a line: None if the result is an error. They raise if the line isn't a result."""


class LineResults:
    """Reads the results in a file of JSON lines, in chunks of any size."""

    def __init__(self, front: str, name: str, found: Found) -> None:
        self._read = _READ[front]
        self._name = name
        self._found = found
        self._rest: list[bytes] = []
        self._size = 0
        self._is_first = True
        self.may_have_results = True
        """Whether the file looks like results so far."""

    def feed(self, piece: bytes) -> None:
        """Read more of the file."""
        if not self.may_have_results:
            return
        first, *more = piece.split(b"\n")
        self._add(first)
        for line in more:
            if not self._end_line():
                return
            self._add(line)

    def close(self) -> None:
        """Read the last line."""
        if self.may_have_results:
            self._end_line()

    def _add(self, part: bytes) -> None:
        self._size += len(part)
        if self._size <= MAX_LINE:
            self._rest.append(part)
            return
        if self._is_first and not self._begins_a_result(part):
            self._stop()
        self._is_first, self._rest = False, []

    def _begins_a_result(self, part: bytes) -> bool:
        """Whether a first line that is too long looks like a result."""
        head = b"".join([*self._rest, part])[:_HEAD].lstrip()
        return head.startswith(b"{") and any(mark in head for mark in _MARKS)

    def _end_line(self) -> bool:
        """Read a line; returns whether to read on."""
        line, size = b"".join(self._rest).strip(), self._size
        self._rest, self._size = [], 0
        if self.may_have_results and size > MAX_LINE:
            self._found(self._name, _UNKNOWN, size)
        elif self.may_have_results and line:
            self._read_line(line)
        return self.may_have_results

    def _read_line(self, line: bytes) -> None:
        try:
            summary = _read_leniently(self._read, line)
        except _FAILURES as failure:
            is_other = isinstance(failure, msgspec.ValidationError)
            if self._is_first and (is_other or not self._begins_a_result(line)):
                self._stop()
                return
            summary = _UNKNOWN
        self._is_first = False
        if summary is not None:
            self._found(self._name, summary, len(line))

    def _stop(self) -> None:
        self.may_have_results, self._rest = False, []


def _read_leniently(read: Callable[[bytes], ReadT], text: bytes) -> ReadT:
    """Read JSON, also if a text or a name in it has half of a character: models write such."""
    try:
        return read(text)
    except _FAILURES:
        whole = _SURROGATE.sub(rb"\\ufffd", text)
        if whole == text:
            raise
    return read(whole)


# --- operations of Gemini, which may contain their results


class _Inlined(Struct, gc=False):
    response: Raw = _NULL


class _InlinedList(Struct, rename="camel"):
    inlined_responses: list[_Inlined] = []


class _Output(Struct, rename="camel"):
    inlined_responses: _InlinedList | None = None


class _Metadata(Struct):
    output: _Output | None = None


class _Operation(Struct):
    name: str = ""
    response: _Output | None = None
    metadata: _Metadata | None = None


class _Operations(_Operation):
    operations: list[_Operation] = []


_operations = msgspec.json.Decoder(_Operations).decode


class OperationResults:
    """Reads the results in an operation, or in a list of operations."""

    may_have_results = True

    def __init__(self, name: str, found: Found) -> None:
        """`name` is the operation's, or the list's, in the path."""
        self._name = name
        self._found = found
        self._pieces: list[bytes] = []
        self._size = 0

    def feed(self, piece: bytes) -> None:
        """Keep more of the body."""
        self._size += len(piece)
        if self._size <= MAX_OPERATION:
            self._pieces.append(piece)
        else:
            self._pieces = []

    def close(self) -> None:
        """Read the body. One that is too long counts by its size."""
        if self._size > MAX_OPERATION:
            self._found(f"{self._name}#{self._size}", _UNKNOWN, self._size)
            return
        body = b"".join(self._pieces)
        try:
            told = _read_leniently(_operations, body)
        except _FAILURES:
            if _RESULTS in body:
                self._found(f"{self._name}#{self._size}", _UNKNOWN, self._size)
            return
        for operation in (told, *told.operations):
            for result in _results(operation):
                summary = _summary(GEMINI, result.response)
                if summary is not None:
                    self._found(operation.name, summary, len(result.response))


def _results(operation: _Operation) -> Iterator[_Inlined]:
    metadata = operation.metadata
    for output in (operation.response, None if metadata is None else metadata.output):
        if output is not None and output.inlined_responses is not None:
            yield from output.inlined_responses.inlined_responses
            return
