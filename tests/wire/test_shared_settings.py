"""Settings that several APIs have are translated between them, or reported."""

from __future__ import annotations

import json
import re
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dragoman import Message, Request, ToolDefinition, dialect, dialects, translate
from dragoman.model import (
    ContextManagement,
    MediaOutput,
    Output,
    Sampling,
    Service,
    State,
    ThinkingConfig,
)
from dragoman.wire.dialect import descriptions

_TEXTS = st.text(min_size=1, max_size=8)
_OBJECTS = st.dictionaries(_TEXTS, _TEXTS, min_size=1, max_size=2)


def _maybe(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | values


_SERVICES = st.builds(
    Service, user=_maybe(_TEXTS), safety_identifier=_maybe(_TEXTS), labels=st.just({}) | _OBJECTS,
    tier=_maybe(st.sampled_from(["auto", "standard", "flex", "priority", "other"])),
    cache_key=_maybe(_TEXTS), cache_retention=_maybe(_TEXTS), moderation=_maybe(_OBJECTS),
    obfuscation=_maybe(st.booleans()),
)  # fmt: skip
_REQUESTS = st.builds(
    Request, model=st.just("m"), messages=st.just((Message.user("Hi"),)),
    sampling=st.builds(Sampling, verbosity=_maybe(_TEXTS)), service=_maybe(_SERVICES),
    media=_maybe(st.builds(MediaOutput, modalities=st.just(("text", "audio")), voice=_maybe(_TEXTS),
                           audio_format=_maybe(_TEXTS))),
    context_management=_maybe(st.builds(ContextManagement, compact_at=_maybe(st.integers(1, 99)),
                                        truncate=_maybe(st.booleans()))),
)  # fmt: skip
_GROUPS = ("service", "media", "context_management")


def _settings(request: Request) -> dict[str, Any]:
    found: dict[str, Any] = {"sampling.verbosity": request.sampling.verbosity}
    for group in _GROUPS:
        value = getattr(request, group)
        for field in () if value is None else value.__struct_fields__:
            found[f"{group}.{field}"] = getattr(value, field)
    return {name: value for name, value in found.items() if value not in (None, (), {})}


@pytest.mark.parametrize("to", dialects())
@given(request=_REQUESTS)
def test_every_setting_arrives_or_is_reported(to: str, request: Request) -> None:
    """The body decodes to the requested settings, apart from those reported as lost."""
    encoded = dialect(to).encode_request(request)
    lost = {loss.path for loss in encoded.losses}
    asked = {name: value for name, value in _settings(request).items() if name not in lost}
    read = _settings(dialect(to).decode_request(encoded.body, path=encoded.path))
    if to == "anthropic" and "service.safety_identifier" in asked:  # one field for both
        asked["service.user"] = asked.pop("service.safety_identifier")
    assert read == asked


_ODD = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | _TEXTS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(_TEXTS, inner, max_size=2),
    max_leaves=4,
)


def _paths(name: str) -> list[str]:
    """Where a dialect has the settings that other APIs have too."""
    rows = import_module(f"dragoman.wire.{name.replace('-', '_')}.settings").SETTINGS.rows
    return [row.wire for row in rows if row.strict]


_PATHS = {each.name: _paths(each.name) for each in descriptions()}


def _body(name: str) -> dict[str, Any]:
    if name == "gemini":
        return {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]}
    body: dict[str, Any] = (
        {"model": "m", "max_tokens": 9} if name == "anthropic" else {"model": "m"}
    )
    messages = [{"role": "user", "content": "Hi"}]
    return {**body, "input" if name == "openai-responses" else "messages": messages}


@pytest.mark.parametrize("name", [name for name, paths in _PATHS.items() if paths])
@given(data=st.data())
def test_odd_values_round_trip(name: str, data: st.DataObject) -> None:
    """A setting's field with any value is unchanged in the same dialect."""
    body = _body(name)
    for path in data.draw(st.lists(st.sampled_from(_PATHS[name]), max_size=4)):
        *steps, last = path.split(".")
        place = body
        for step in steps:
            place = place.setdefault(step, {})
            if not isinstance(place, dict):
                break
        else:
            place[last] = data.draw(_ODD)
    request = dialect(name).decode_request(body)
    assert dialect(name).encode_request(request).body == body
    assert Request.from_json(request.to_json()).identical(request)


def test_edits_are_written() -> None:
    """A setting that was changed or removed is written as it is now."""
    body = {**_body("openai-chat"), "user": "a", "service_tier": "flex"}
    request = dialect("openai-chat").decode_request(body)
    assert request.service == Service(user="a", tier="flex")
    edited = dialect("openai-chat").encode_request(request.replace(service=Service(user="b")))
    assert edited.body == {**_body("openai-chat"), "user": "b"}


def test_a_coding_agent_s_request_has_no_losses() -> None:
    """Codex's settings mean the same in Chat."""
    body = {
        "model": "gpt-5",
        "input": [{"role": "user", "content": "Hi"}],
        "tools": [{"type": "function", "name": "f", "description": "F.", "strict": False,
                   "parameters": {"type": "object", "properties": {}}}],
        "tool_choice": "auto",
        "parallel_tool_calls": False,
        "prompt_cache_key": "k",
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "text": {"verbosity": "low"},
    }  # fmt: skip
    encoded = translate(body, source="openai-responses", target="openai-chat", strict=True)
    assert encoded.body["prompt_cache_key"] == "k"
    assert encoded.body["verbosity"] == "low"


_FIXTURES = Path(__file__).parent.parent / "fixtures"
_ALL = sorted(_FIXTURES.glob("*/*.json"))
_EARLIER = [file for file in _ALL if b'"version_1"' in file.read_bytes()]


@pytest.mark.parametrize("file", _EARLIER, ids=lambda file: f"{file.parent.name}-{file.stem}")
def test_stored_requests_of_version_1_are_unchanged(file: Path) -> None:
    """Requests stored with these settings in their extras have the same body."""
    fixture = json.loads(file.read_text(encoding="utf-8"))
    request = Request.from_json(json.dumps(fixture["version_1"]))
    encoded = dialect(file.parent.name).encode_request(request)
    assert json.loads(encoded.to_bytes()) == fixture["wire"]
    assert encoded.losses == ()


def test_tools_keep_their_settings_across_dialects() -> None:
    """Deferred loading and allowed callers are translated, or reported as lost."""
    body = {
        **_body("anthropic"),
        "tools": [{"name": "f", "input_schema": {"type": "object", "properties": {}},
                   "defer_loading": True, "allowed_callers": ["code_execution_20250825"]}],
    }  # fmt: skip
    request = dialect("anthropic").decode_request(body)
    (tool,) = request.tools
    assert isinstance(tool, ToolDefinition)
    assert (tool.defer_loading, tool.allowed_callers) == (True, ("code",))
    assert dialect("anthropic").encode_request(request).body == body
    (there,) = dialect("openai-responses").encode_request(request).body["tools"]
    assert there["defer_loading"] is True
    assert there["allowed_callers"] == ["programmatic"]
    lost = [loss.path for loss in dialect("ollama").encode_request(request).losses]
    assert {"tools[0].defer_loading", "tools[0].allowed_callers"} <= {*lost}


_ANYTHING = st.builds(
    Request, model=st.just("m"), messages=st.just((Message.user("Hi"),)),
    sampling=st.builds(
        Sampling, max_tokens=_maybe(st.integers(1, 9)), temperature=_maybe(st.just(0.5)),
        top_p=_maybe(st.just(0.5)), top_k=_maybe(st.just(3)), stop=st.sampled_from([(), ("x",)]),
        seed=_maybe(st.just(3)), presence_penalty=_maybe(st.just(0.5)),
        frequency_penalty=_maybe(st.just(0.5)), choices=_maybe(st.just(2)),
        logprobs=_maybe(st.booleans()), top_logprobs=_maybe(st.just(2)),
    ),
    output=_maybe(st.builds(
        Output, format=st.sampled_from(["text", "json", "schema"]), name=_maybe(_TEXTS),
        schema=_maybe(st.just({"type": "object"})), description=_maybe(_TEXTS),
        strict=_maybe(st.booleans()),
    )),
    thinking=_maybe(st.builds(
        ThinkingConfig, enabled=_maybe(st.booleans()), effort=_maybe(st.just("high")),
        budget=_maybe(st.just(2000)), visible=_maybe(st.booleans()), summary=_maybe(_TEXTS),
    )),
    state=_maybe(st.builds(State, previous_response_id=_maybe(_TEXTS), conversation=_maybe(_TEXTS),
                           prompt=_maybe(_TEXTS), thread=_maybe(_TEXTS),
                           cached_content=_maybe(_TEXTS), store=_maybe(st.booleans()))),
)  # fmt: skip
_BARE_SCHEMA = Request(
    model="m", messages=(Message.user("Hi"),), output=Output(format="schema", name="n", strict=True)
)
_STEP = re.compile(r"(\w+)|\[(\d+)\]")


@pytest.mark.parametrize("to", dialects())
@given(request=_ANYTHING)
@example(request=_BARE_SCHEMA)
def test_a_loss_points_at_what_was_asked_for(to: str, request: Request) -> None:
    """Its path leads to a value of the request that is set."""
    for loss in dialect(to).encode_request(request).losses:
        value: Any = request
        for name, index in _STEP.findall(loss.path):
            value = value[int(index)] if index else getattr(value, name)
        assert value is not None, loss.path


@pytest.mark.parametrize("to", ["gemini", "ollama"])
def test_a_schema_that_is_missing_is_a_loss(to: str) -> None:
    """Any JSON is asked for instead, and the caller is told so."""
    lost = {loss.path for loss in dialect(to).encode_request(_BARE_SCHEMA).losses}
    assert "output" in lost
