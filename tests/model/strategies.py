"""Hypothesis strategies for every value of the model."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Mapping
from typing import Any, TypeVar

from hypothesis import strategies as st
from msgspec import UNSET

from dragoman.model.catalogue import Embeddings, ModelInfo, TokenCount
from dragoman.model.collection import Messages
from dragoman.model.content import AnyPart
from dragoman.model.events import (
    ChoiceFinish,
    Event,
    OpaqueEvent,
    PartDelta,
    PartStart,
    PartStop,
    ResponseEnd,
    ResponseStart,
    StreamError,
    UsageUpdate,
)
from dragoman.model.frozen import MAX_INTEGER_BITS
from dragoman.model.jsontext import dumps
from dragoman.model.media import Audio, File, Image, Media, Video
from dragoman.model.messages import make_message
from dragoman.model.parts import (
    CacheHint,
    Citation,
    Opaque,
    Origin,
    Part,
    Refusal,
    ServerToolCall,
    ServerToolResult,
    Text,
    Thinking,
)
from dragoman.model.requests import Output, Request, Sampling, State, ThinkingConfig
from dragoman.model.responses import Choice, Embedding, Response
from dragoman.model.roles import Role
from dragoman.model.tools import (
    ServerTool,
    ToolCallDelta,
    ToolChoice,
    ToolDefinition,
    make_call,
    make_definition,
    make_result,
)
from dragoman.model.usage import FinishReason, Usage
from dragoman.model.value import Value

T = TypeVar("T")

_BIGGEST = 2**MAX_INTEGER_BITS - 1
_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")


def brief(strategy: st.SearchStrategy[T]) -> st.SearchStrategy[T]:
    """The same strategy with a short repr: hypothesis writes out all that one is made of."""

    @st.composite
    def drawn(draw: st.DrawFn) -> T:
        return draw(strategy)

    return drawn()


# The default alphabet has no surrogates: half a character is drawn on purpose, NUL too.
_characters = st.one_of(
    st.characters(), st.characters(categories=["Cs"]), st.sampled_from('\x00"\\\n{}[]é🐉')
)
# JSON reads two halves side by side as the character they make.
texts = brief(st.text(_characters, max_size=12).filter(lambda text: not _PAIR.search(text)))
words = brief(st.text(st.sampled_from("abcdefgh_-.0123"), min_size=1, max_size=12))
small = st.integers(0, 9)
counts = st.integers(0, 10**6)
finite = st.floats(allow_nan=False, allow_infinity=False)
_edges = (0, 2**63, 2**64, -(2**64), _BIGGEST, -_BIGGEST)
integers = st.integers() | st.integers(0, 5).map(lambda place: _edges[place])
scalars = st.none() | st.booleans() | integers | finite | texts
json_values: st.SearchStrategy[Any] = brief(
    st.recursive(
        scalars,
        lambda inner: st.lists(inner, max_size=2) | st.dictionaries(texts, inner, max_size=2),
        max_leaves=4,
    )
)
json_objects = brief(st.dictionaries(texts, json_values, max_size=2))
extras = brief(st.just({}) | st.dictionaries(words, json_objects, max_size=1))


def maybe(strategy: st.SearchStrategy[T]) -> st.SearchStrategy[T | None]:
    """Mostly the value, sometimes None."""
    return st.none() | strategy


origins = st.builds(
    Origin, dialect=words, provider=maybe(words), model=maybe(words), response_id=maybe(words)
)
cache_hints = st.builds(CacheHint, maybe(words))
citations = st.builds(
    Citation, kind=words, url=maybe(texts), title=maybe(texts), quote=maybe(texts),
    start=maybe(counts), end=maybe(counts), extras=json_objects,
)  # fmt: skip

_shared: Mapping[str, st.SearchStrategy[Any]] = {
    "item_id": maybe(words),
    "origin": maybe(origins),
    "cache": maybe(cache_hints),
    "signature": maybe(texts),
    "extras": extras,
}
_base64 = st.binary(max_size=40).map(lambda content: b64encode(content).decode("ascii"))
_places = st.one_of(
    st.fixed_dictionaries({"data": _base64}),
    st.fixed_dictionaries({"url": words.map("https://example.com/".__add__)}),
    st.fixed_dictionaries({"file_id": words}),
)
M = TypeVar("M", bound=Media)


def media_of(kind: type[M]) -> st.SearchStrategy[M]:
    """Media of one kind, inline, by address or uploaded."""
    fields = st.fixed_dictionaries(
        {**_shared, "mime": maybe(words), "name": maybe(texts), "detail": maybe(words)}
    )
    return st.builds(lambda place, rest: kind(**place, **rest), _places, fields)


P = TypeVar("P", bound=Part)


def checked(part: P) -> P:
    """As a part is once it is in a message: the plain ones don't freeze their extras earlier."""
    part.check()
    return part


text_parts = st.builds(
    Text, text=texts, citations=st.lists(citations, max_size=1).map(tuple), **_shared
).map(checked)
thinking_parts = st.builds(
    Thinking, text=texts, data=maybe(texts),
    form=st.sampled_from(["full", "summary", "redacted"]), **_shared,
).map(checked)  # fmt: skip
refusals = st.builds(Refusal, text=texts, **_shared).map(checked)
images, videos, files = media_of(Image), media_of(Video), media_of(File)
audios = st.builds(
    lambda audio, transcript: audio.replace(transcript=transcript), media_of(Audio), maybe(texts)
)
opaques = st.builds(Opaque, dialect=words, payload=json_values, **_shared)
server_calls = st.builds(
    ServerToolCall, name=words, call_id=maybe(words), input=json_values, **_shared
)
server_results = st.builds(
    ServerToolResult, name=words, call_id=maybe(words), content=json_values,
    is_error=maybe(st.booleans()), **_shared,
)  # fmt: skip

_wire_ids: st.SearchStrategy[Any] = st.just(UNSET) | maybe(words)
_raw = texts | json_objects.map(lambda value: dumps(value).decode("utf-8"))
tool_calls = st.one_of(
    st.builds(make_call, id=words, name=words, raw=_raw, wire_id=_wire_ids, **_shared),
    st.builds(make_call, id=words, name=words, input=json_objects, wire_id=_wire_ids, **_shared),
    st.builds(make_call, id=words, name=words, raw=texts, kind=st.just("custom"), **_shared),
)
_result_content = texts | st.lists(
    st.one_of(text_parts, images, audios, videos, files, refusals, opaques), max_size=2
).map(tuple)
tool_results = st.builds(
    make_result, call_id=words, content=_result_content, data=st.just(UNSET) | json_values,
    tool_name=maybe(words), is_error=maybe(st.booleans()), **_shared,
)  # fmt: skip
media_parts: st.SearchStrategy[Media] = st.one_of(images, audios, videos, files)
parts: st.SearchStrategy[AnyPart] = brief(st.one_of(
    text_parts, thinking_parts, refusals, images, audios, videos, files,
    tool_calls, tool_results, server_calls, server_results, opaques,
))  # fmt: skip

usages = st.builds(
    Usage, input=counts, output=counts, cache_read=counts, cache_write=counts, thinking=counts,
    reported_total=maybe(counts), extras=json_objects,
    details=st.dictionaries(
        st.sampled_from(["input_audio", "cache_write_1h", "odd"]), counts, max_size=2
    ),
)  # fmt: skip
finishes = st.sampled_from(FinishReason)
roles = st.sampled_from(Role)
messages = brief(st.builds(
    make_message, roles, st.lists(parts, max_size=3).map(tuple), name=maybe(texts),
    id=st.just("") | words, metadata=json_objects, extras=extras, origin=maybe(origins),
    usage=maybe(usages), finish=maybe(finishes), created_at=maybe(finite),
))  # fmt: skip
conversations = st.lists(messages, max_size=3).map(Messages.of)

_schemas = json_objects.map(lambda rest: {**rest, "type": "object"})
tool_names = st.text(st.sampled_from("abcXYZ_019"), min_size=1, max_size=64)
tool_definitions = st.one_of(
    st.builds(
        ToolDefinition, tool_names, texts.filter(bool), _schemas, st.booleans(),
        cache=maybe(cache_hints), extras=extras,
    ),
    st.builds(
        make_definition, words, maybe(texts), maybe(json_objects), maybe(st.booleans()),
        kind=st.sampled_from(["function", "custom"]), format=maybe(json_objects), origin=origins,
    ),
)  # fmt: skip
server_tools = st.builds(ServerTool, words, words, payload=json_objects, cache=maybe(cache_hints))
tool_choices = st.one_of(
    st.builds(
        ToolChoice, st.sampled_from(["auto", "none", "required"]),
        parallel=maybe(st.booleans()), extras=extras,
    ),
    st.builds(ToolChoice, st.just("named"), st.tuples(words)),
    st.builds(ToolChoice, st.just("allowed"), st.lists(words, max_size=3).map(tuple)),
)  # fmt: skip
samplings = st.builds(
    Sampling, max_tokens=maybe(counts), temperature=maybe(finite), top_p=maybe(finite),
    top_k=maybe(counts), stop=st.lists(texts, max_size=2).map(tuple), seed=maybe(st.integers()),
    presence_penalty=maybe(finite), frequency_penalty=maybe(finite), choices=maybe(small),
    logprobs=maybe(st.booleans()), top_logprobs=maybe(small),
)  # fmt: skip
outputs = st.builds(
    Output, format=st.sampled_from(["text", "json", "schema"]), schema=maybe(json_objects),
    name=maybe(words), description=maybe(texts), strict=maybe(st.booleans()), extras=extras,
)  # fmt: skip
thinking_configs = st.builds(
    ThinkingConfig, enabled=maybe(st.booleans()), effort=maybe(words), budget=maybe(counts),
    visible=maybe(st.booleans()), summary=maybe(words), extras=extras,
)  # fmt: skip
states = st.builds(
    State, previous_response_id=maybe(words), conversation=maybe(words), store=maybe(st.booleans())
)
requests = st.builds(
    Request, model=maybe(words), system=st.lists(text_parts, max_size=2).map(tuple),
    messages=st.lists(messages, max_size=2).map(tuple),
    tools=st.lists(tool_definitions | server_tools, max_size=2).map(tuple),
    tool_choice=maybe(tool_choices), sampling=samplings, output=maybe(outputs),
    thinking=maybe(thinking_configs), state=maybe(states), stream=maybe(st.booleans()),
    metadata=json_objects, extras=extras,
)  # fmt: skip
choices = st.builds(
    Choice, small, messages, maybe(finishes), maybe(words), logprobs=json_values, extras=extras
)
responses = st.builds(
    Response, choices=st.lists(choices, max_size=2).map(tuple), usage=maybe(usages),
    model=maybe(words), id=maybe(words), created_at=maybe(finite), extras=extras,
)  # fmt: skip
embeddings = st.builds(
    Embedding, st.lists(finite, max_size=5).map(tuple), index=small, model=maybe(words),
    usage=maybe(usages), extras=extras,
)  # fmt: skip
catalogue = st.one_of(
    st.builds(Embeddings, st.lists(embeddings, max_size=2).map(tuple), maybe(words), maybe(usages)),
    st.builds(ModelInfo, words, maybe(texts), maybe(counts), maybe(finite), extras),
    st.builds(TokenCount, counts, st.booleans()),
)

tool_call_deltas = st.builds(
    ToolCallDelta, index=maybe(small), id=maybe(words), name=maybe(words),
    arguments_delta=maybe(texts), choice=small, kind=st.sampled_from(["function", "custom"]),
    signature=maybe(texts), extras=extras,
)  # fmt: skip
events: st.SearchStrategy[Event] = st.one_of(
    st.builds(
        ResponseStart, id=maybe(words), model=maybe(words), created_at=maybe(finite),
        origin=maybe(origins), extras=extras,
    ),
    st.builds(PartStart, small, parts, choice=small),
    st.builds(
        PartDelta, small, maybe(texts), maybe(texts), maybe(texts),
        st.lists(citations, max_size=1).map(tuple), choice=small,
    ),
    tool_call_deltas,
    st.builds(PartStop, small, maybe(parts), choice=small),
    st.builds(UsageUpdate, usages),
    st.builds(
        ChoiceFinish, finishes, maybe(words), choice=small, logprobs=json_values, extras=extras
    ),
    st.builds(StreamError, texts, maybe(words), maybe(counts), extras),
    st.builds(OpaqueEvent, words, json_values),
    st.just(ResponseEnd()),
)  # fmt: skip

values: st.SearchStrategy[Value] = brief(st.one_of(
    parts, messages, usages, requests, responses, choices, embeddings, catalogue, events, origins,
    citations, cache_hints, tool_definitions, server_tools, tool_choices, samplings, outputs,
    thinking_configs, states,
))  # fmt: skip
"""A value of any type of the model."""
