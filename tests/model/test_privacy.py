"""Nothing leaks: content is in no `repr`, exception, warning or log line.

Secrets are passed to everything callable, found by introspection: a new class or method is covered
as soon as it exists.
"""

from __future__ import annotations

import asyncio
import base64
import inspect
import json
import logging
import pickle
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from functools import cache, partial
from math import nan
from typing import Any

import pydantic
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rich.pretty import pretty_repr

import dragoman
from dragoman.errors import DragomanError, InvalidInputError
from dragoman.model import content, document, frozen, jsontext, schema, shapes
from dragoman.model.accumulate import MessageAccumulator
from dragoman.model.collection import Messages
from dragoman.model.events import PartDelta, PartStart, StreamError
from dragoman.model.media import File, Image
from dragoman.model.messages import Message
from dragoman.model.parts import Citation, Opaque, Origin, Refusal, Text, Thinking
from dragoman.model.roles import Role
from dragoman.model.tools import ToolCall, ToolCallDelta, ToolDefinition, ToolResult, make_call
from dragoman.model.value import Value, unchecked
from dragoman.wire.losses import Loss, Repair
from dragoman.wire.violations import Violation
from tests.model.anything import value_types

pytestmark = pytest.mark.whole

Secrets = st.integers(0, 16**16 - 1).map(lambda number: f"zqzq{number:016x}")


@dataclass
class Point:
    """A type to read arguments into."""

    x: int


class Model(pydantic.BaseModel):
    """As above, with errors that quote."""

    x: int


class Loud(pydantic.BaseModel):
    """A model that can't be written."""

    x: Any = None

    def model_dump_json(self, **_: Any) -> str:
        """Fails, and says with what."""
        raise ValueError(self.x)


class Stranger:
    """An object with an opinion of how it should be shown."""

    def __init__(self, secret: str) -> None:
        self.secret = secret

    def __str__(self) -> str:
        return self.secret

    __repr__ = __str__


# --- looking for it


def forms_of(secret: str) -> tuple[str, ...]:
    """All forms that would reveal the secret: itself and its base64."""
    return secret, base64.b64encode(secret.encode()).decode().rstrip("=")


def find(secret: str, shown: str, where: str) -> None:
    """Fail where the secret is in a text."""
    for form in forms_of(secret):
        assert form not in shown, where


def look_at(secret: str, value: Any, where: str) -> None:
    """Fail where a value of ours shows the secret."""
    if isinstance(value, (Loss, Repair, Violation)) or not type(value).__module__.startswith(
        "dragoman"
    ):
        return  # these two are written by us, to be shown; a plain value is the content itself
    if isinstance(value, (Value, Messages, MessageAccumulator)):
        find(secret, repr(value), f"repr after {where}")
        find(secret, pretty_repr(value), f"rich after {where}")
        if not isinstance(value, (Message, Text, Refusal, ToolResult)):  # printed as their text
            find(secret, str(value), f"str after {where}")


def look_into(secret: str, error: BaseException, where: str) -> None:
    """Fail where an exception, or what stands behind it, shows the secret."""
    seen: set[int] = set()
    pending: list[BaseException | None] = [error]
    while pending:
        current = pending.pop()
        if current is None or id(current) in seen:
            continue
        seen.add(id(current))
        shown = (str(current), repr(current), repr(current.args), repr(vars(current)))
        for text in (*shown, *getattr(current, "__notes__", ())):
            find(secret, text, f"{type(current).__name__} after {where}")
        pending += [current.__cause__, current.__context__]


@pytest.fixture(autouse=True)
def _elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAGOMAN_HISTORY", "memory:")  # not where people keep theirs
    # Names and ids of one word may be shown, through one function: here everything is a secret.
    monkeypatch.setattr("dragoman.model.value._is_shown", lambda _name: None)


def drive(secret: str, call: Callable[[], Any], where: str) -> Any:
    """Calls it, and inspects the result."""
    try:
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            result = call()
            if inspect.iscoroutine(result):
                result = asyncio.run(result)
    except Exception as error:  # noqa: BLE001 - whatever it is, it must not tell
        look_into(secret, error, where)
        return None
    for warning in warned:
        find(secret, str(warning.message), f"warning after {where}")
    look_at(secret, result, where)
    return result


# --- what to drive through


def junk(secret: str) -> list[Any]:
    """The secret in every disguise."""
    spelled = json.dumps(secret)
    document_of = '{"dragoman":1,"kind":"%s","value":%s}'
    return [
        secret, [secret], {secret: secret}, {"a": {secret: [secret]}}, (secret, 5), {secret},
        secret.encode(), bytearray(secret.encode()), Stranger(secret), {"a": Stranger(secret)},
        {"a": [secret, nan]}, {secret: object()}, {1: secret}, Loud(x=secret), 5, None, [],
        secret + "\ud800", f"data:{secret}", f"data:{secret};base64,{secret}", f"data:,{secret}",
        f"https://{secret}", f"{secret}:{secret}", f"/nowhere/{secret}", f"{secret}\x00",
        f"@{secret}",
        {"role": secret}, {"role": "user", "content": secret}, {"role": "user", secret: secret},
        {"role": "user", "content": [{"type": secret}]}, {"role": "tool", "content": secret},
        {"role": "user", "content": [{"type": "text", "text": [secret]}]},
        {"role": "assistant", "tool_calls": [{"id": secret, "name": secret, "arguments": secret}]},
        {"role": "assistant", "tool_calls": [{"id": secret, "name": [secret]}]},
        {"role": "assistant", "tool_calls": [{"name": "f", "arguments": [secret]}]},
        {"role": "user", "content": "", "metadata": {secret: nan}, "id": [secret]},
        {"type": secret}, {"type": "text", "text": {secret: 1}}, {"type": "opaque", secret: secret},
        {"type": "thinking", "form": secret}, {"type": "image_url", "image_url": {"url": secret}},
        {"type": "image_url", "image_url": {"url": "https://x", "detail": [secret]}},
        {"type": "input_audio", "input_audio": {"data": f"@{secret}", "format": secret}},
        {"type": "file", "file": {"file_data": secret, "file_name": [secret]}},
        {"parts": [{"type": "text", "text": secret, secret: secret}]}, {"parts": [secret]},
        {"parts": [{"type": secret}], "role": "user"}, {"parts": [], "finish": secret},
        {"type": "object", "properties": {secret: {"type": secret}}}, {"x": secret},
        {"canonical": secret}, {"canonical": {secret: secret}},
        f'{{"x":{spelled}}}', f"{{{spelled}:1e400}}", f"{{{spelled}:", f"[{spelled}]",
        document_of % ("Message", f'{{"role":{spelled}}}'), document_of % (secret, "{}"),
        document_of % ("Message", f'{{"role":"user",{spelled}:1}}'),
        document_of % ("Message", f'{{"role":"user","metadata":{{{spelled}:"\\ud800"}},"id":5}}'),
        document_of % ("Messages", f'[{{"role":"user","parts":[{{"type":{spelled}}}]}}]'),
        f'{{"dragoman":{spelled},"kind":{spelled}}}', (f'"{secret}').encode() + b"\xff",
        Text(secret), Text(secret, item_id=secret, signature=secret, extras={secret: secret}),
        Text([secret]), Thinking(secret, form=secret), Thinking(secret, data=secret),  # type: ignore[arg-type]
        Opaque(secret, {secret: secret}), Image.from_base64(secret, secret, name=secret),
        Citation(kind=secret, url=secret, quote=secret), Origin(dialect=secret, model=secret),
        File.from_url(f"https://{secret}", name=secret), ToolResult(secret, secret),
        make_call(secret, secret, raw=secret),
        ToolCall("1", "f", input={secret: secret, "x": secret}),
        ToolResult("1", data={secret: secret}), ToolCallDelta(0, secret, secret, secret),
        ToolDefinition("f", secret, {"type": "object", "properties": {secret: {}}}),
        PartStart(0, Text(secret)), PartDelta(0, secret), StreamError(secret),
        Message.user(secret, name=secret, id=secret, metadata={secret: secret}),
        Messages.from_any([secret, secret]), Role.USER, Point, Model, int, dict[str, int],
        lambda *_: secret,
    ]  # fmt: skip


def samples(secret: str) -> Iterator[Any]:
    """Values that hold the secret wherever they can."""
    for kind in value_types():
        info: dict[str, Any] = dict.fromkeys(kind.__struct_fields__, secret)
        for overrides in _OVERRIDES:
            try:
                yield unchecked(kind)(
                    **info | {k: v for k, v in overrides(secret).items() if k in info}
                )
                break
            except (DragomanError, TypeError):
                continue
    yield Message.user(secret, Image.from_base64(secret), name=secret, metadata={secret: secret})
    yield Message.assistant(
        secret, tool_calls=[ToolCall(secret, secret, raw=f'{{"x":"{secret}"}}')]
    )
    yield Message.assistant(tool_calls=[ToolCall("1", secret, input={secret: secret})])
    yield Message.tool(secret, secret, tool_name=secret)
    yield Messages(Message.user(secret), Message.tool(secret, secret))
    accumulator = MessageAccumulator()
    accumulator.extend([PartDelta(0, secret), ToolCallDelta(0, secret, secret, secret)])
    yield accumulator


_COMMON: dict[str, Any] = {
    **dict.fromkeys(("cache", "usage", "finish", "created_at", "strict", "start", "end")),
    **dict.fromkeys(("is_error", "wire_id", "input", "status", "parallel", "format", "logprobs")),
    **dict.fromkeys(("budget", "enabled", "visible", "store", "url", "file_id", "stream")),
    **dict.fromkeys(("function",)),
    **dict.fromkeys(("output", "thinking", "state", "tool_choice", "temperature", "top_p")),
    **dict.fromkeys(("presence_penalty", "frequency_penalty", "top_k", "seed"), 1),
    **dict.fromkeys(("index", "choice", "max_tokens", "top_logprobs", "reported_total"), 1),
    "kind": "function", "form": "full", "mode": "auto", "citations": (), "vector": (0.5,),
    "sampling": dragoman.model.Sampling(),
    **dict.fromkeys(("media", "service", "context_management", "defer_loading", "obfuscation")),
    **dict.fromkeys(("location", "max_uses", "max_content_tokens", "max_results", "compact_at")),
    **dict.fromkeys(("display_width", "display_height", "truncate", "output_schema")),
}  # fmt: skip


def _holding(secret: str) -> dict[str, Any]:
    mapping = {secret: {secret: secret}}
    return {
        **_COMMON,
        "origin": Origin(dialect=secret, provider=secret, model=secret, response_id=secret),
        "extras": mapping, "message_extras": mapping, "metadata": mapping, "payload": mapping,
        "schema": mapping, "cache_options": mapping, "details": {secret: 1},
        "parameters": {"type": "object", "properties": mapping}, "parts": (Text(secret),),
        "messages": (Message.user(secret),), "message": Message.user(secret), "role": Role.USER,
        "name": "f",  # a definition's name is the developer's, and helps in an error
        "choices": (), "system": (Text(secret),), "tools": (), "names": (secret,),
        "stop": (secret,), "modalities": (secret,), "allowed_callers": (secret,),
        "allowed_domains": (secret,), "blocked_domains": (secret,), "file_ids": (secret,),
        "stores": (secret,), "allowed_tools": (secret,), "labels": mapping, "headers": mapping,
        "moderation": mapping,
    }  # fmt: skip


def _holding_less(secret: str) -> dict[str, Any]:
    return {
        **_holding(secret),
        "content": (Text(secret),),
        "format": "json",
        "choices": 1,
        "citations": None,
    }


def _counting(secret: str) -> dict[str, Any]:
    return {
        **_holding(secret), "part": Text(secret), "usage": dragoman.Usage(),
        "finish": dragoman.FinishReason.STOP,
        **dict.fromkeys(("input", "output", "thinking", "cache_read", "cache_write"), 1),
    }  # fmt: skip


def _listing(secret: str) -> dict[str, Any]:
    return {
        **_counting(secret), "items": (), "tokens": 1, "is_estimate": True, "context_window": 1,
        "created": 1.0,
    }  # fmt: skip


# What fits a field depends on the type; one of these does.
_OVERRIDES: list[Callable[[str], dict[str, Any]]] = [_holding, _holding_less, _counting, _listing]


_MODULES = (content, document, frozen, jsontext, schema, shapes)
# They take something else than content: a registry's key, the name of a field of ours, and code,
# whose names they show.
_SKIPPED = {"register", "mro", "wrapping", "settle", "freeze", "freeze_mapping"} | {
    "from_type",
    "from_function",
}


def doors() -> list[tuple[str, Callable[..., Any]]]:
    """Everything that can be called without a value: constructors, class methods, functions."""
    public: list[Any] = [
        getattr(module, name)
        for module in (dragoman, dragoman.agent, dragoman.model, dragoman.providers,
                       dragoman.testing, dragoman.transport, dragoman.wire)
        for name in module.__all__
    ]  # fmt: skip
    public = [
        each for each in public if each is not dragoman.reveal
    ]  # it is there to show things, and would from here on
    classes = {kind for kind in public if inspect.isclass(kind) and not _is_error(kind)}
    found: dict[str, Callable[..., Any]] = {}
    for kind in (*classes, *value_types()):
        # Enums make new enums of more than one argument.
        found[kind.__name__] = partial(_member, kind) if issubclass(kind, Enum) else kind
        for name, member in inspect.getmembers(kind):
            is_bound = inspect.ismethod(member) and member.__self__ is kind
            is_static = isinstance(inspect.getattr_static(kind, name), staticmethod)
            if (is_bound or is_static) and not name.startswith("_") and name not in _SKIPPED:
                found[f"{kind.__name__}.{name}"] = member
    for module in _MODULES:
        for name, member in inspect.getmembers(module, inspect.isfunction):
            is_own = member.__module__ == module.__name__
            if is_own and not name.startswith("_") and name not in _SKIPPED:
                found[f"{module.__name__}.{name}"] = member
    found["dialect"] = dragoman.dialect
    return sorted(found.items())


def _member(kind: type[Enum], value: Any) -> Enum:
    return kind(value)


def _is_error(kind: type) -> bool:
    return issubclass(kind, BaseException)  # their text is their maker's


def methods(value: Any) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Everything that can be asked of a value."""
    for name in dir(type(value)):
        if name.startswith("_") or name in _SKIPPED:
            continue
        where = f"{type(value).__name__}.{name}"
        static = inspect.getattr_static(type(value), name)
        if name == "map_text":  # gives content to the caller's function: what that says is its own
            yield where, lambda *given: None if int in given else value.map_text(*given)
        elif callable(static) or isinstance(static, (classmethod, staticmethod)):
            yield where, getattr(value, name)
        else:
            yield where, partial(getattr, value, name)
    yield f"{type(value).__name__} ==", lambda *other: value == (other or (1,))[0]
    yield f"{type(value).__name__} hash", lambda *_: hash(value)
    yield f"{type(value).__name__} pickle", lambda *_: pickle.loads(pickle.dumps(value))  # noqa: S301


def arguments(secret: str, data: st.DataObject, call: Callable[..., Any]) -> dict[str, Any] | None:
    """Keyword arguments with the secret, by the names that the callable has; now and then a few."""
    names = list(getattr(call, "__struct_fields__", ()))
    if not names:
        try:
            parameters = inspect.signature(call).parameters.values()
        except (TypeError, ValueError):
            return None
        names = [p.name for p in parameters if p.kind in {p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD}]
    chosen = data.draw(st.lists(st.sampled_from(names), max_size=2, unique=True)) if names else []
    return {name: data.draw(st.sampled_from(junk(secret))) for name in chosen}


@pytest.fixture(autouse=True)
def _all_logs(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)


def look_at_logs(secret: str, caplog: pytest.LogCaptureFixture, where: str) -> None:
    """Fail where a log line shows the secret."""
    for record in caplog.records:
        find(secret, record.getMessage() + repr(vars(record)), f"log after {where}")
    caplog.clear()


quietly = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.mark.parametrize(("where", "call"), doors(), ids=[name for name, _ in doors()])
def test_no_constructor_reveals_content(
    where: str, call: Callable[..., Any], caplog: pytest.LogCaptureFixture
) -> None:
    """A secret as the first and second argument of every constructor is never revealed."""
    for secret in ("zqzq0123456789abcdef", "zqzqfedcba9876543210"):
        for one in junk(secret):
            drive(secret, lambda one=one: call(one), where)  # type: ignore[misc]
            drive(secret, lambda one=one: call("x", one), where)  # type: ignore[misc]
            drive(secret, lambda one=one: call("x", "y", one), where)  # type: ignore[misc]
        look_at_logs(secret, caplog, where)


@quietly
@given(Secrets, st.data())
def test_no_combination_of_arguments_reveals_content(
    caplog: pytest.LogCaptureFixture, secret: str, data: st.DataObject
) -> None:
    """Random arguments to random constructors don't reveal it either."""
    where, call = data.draw(st.sampled_from(doors()))
    positional = data.draw(st.lists(st.sampled_from(junk(secret)), max_size=3))
    named = arguments(secret, data, call) or {}
    made = drive(secret, lambda: call(*positional, **named), where)
    if isinstance(made, (Value, Messages)):
        asked, method = data.draw(st.sampled_from(list(methods(made))))
        drive(secret, lambda: method(*positional[:1]), asked)
    look_at_logs(secret, caplog, where)


@cache
def samples_by_type(secret: str) -> dict[str, list[Any]]:
    """The samples, by the names of their types."""
    found: dict[str, list[Any]] = {}
    for value in samples(secret):
        found.setdefault(type(value).__name__, []).append(value)
    return found


@pytest.mark.parametrize("name", sorted({type(value).__name__ for value in samples("zqzq")}))
def test_no_value_reveals_content(name: str, caplog: pytest.LogCaptureFixture) -> None:
    """A value full of secrets reveals none, whichever method is called."""
    secret = "zqzq0123456789abcdef"
    for value in samples_by_type(secret)[name]:
        look_at(secret, value, name)
        for where, method in methods(value):
            drive(secret, method, where)
            for one in junk(secret):
                drive(secret, lambda one=one, method=method: method(one), where)  # type: ignore[misc]
                drive(secret, lambda one=one, method=method: method("x", one), where)  # type: ignore[misc]
    look_at_logs(secret, caplog, name)


@given(Secrets, st.data())
def test_changed_copies_do_not_tell(secret: str, data: st.DataObject) -> None:
    """`replace` with a secret, as a field's value or as the name of one, keeps it."""
    value = data.draw(st.sampled_from(list(samples(secret))))
    if isinstance(value, Value):
        field = data.draw(st.sampled_from((*value.__struct_fields__, secret)))
        change = {field: data.draw(st.sampled_from(junk(secret)))}
        drive(secret, lambda: value.replace(**change), f"{type(value).__name__}.replace")


def test_samples_are_of_every_type() -> None:
    """There is a value full of secrets of every type; the tests above leave none out."""
    covered = {type(value).__name__ for value in samples("zqzq")}
    assert {kind.__name__ for kind in value_types()} - covered == set()


@given(Secrets)
def test_invalid_arguments_are_not_revealed(secret: str) -> None:
    """Arguments of the wrong type are rejected without being shown, also by pydantic."""
    for raw in (f'{{"x":"{secret}"}}', f'{{"{secret}":1}}', f'{{"x":"{secret}\\ud800"}}', secret):
        call = make_call("1", "f", raw=raw)
        for kind in (Point, Model, dict[str, int], int, list[int]):
            drive(secret, partial(call.arguments_as, kind), f"arguments_as({kind})")
            drive(secret, partial(call.argument, "x", kind), f"argument({kind})")
    with pytest.raises(InvalidInputError):
        ToolCall("1", "f", raw=f'{{"x":"{secret}"}}').arguments_as(Model)


@given(Secrets)
def test_a_message_is_printed_as_its_text(secret: str) -> None:
    """`str` and `preview` are how to see what was said; `repr` shows kinds and sizes."""
    message = Message.user(secret)
    assert str(message) == secret
    assert message.preview(4) == "zqz…"
    assert repr(message) == "Message(user, Text(20 chars))"


@given(Secrets)
def test_texts_and_results_are_printed_as_their_text(secret: str) -> None:
    """As messages are: seed 000's `__toString`; their `repr` stays private."""
    result = ToolResult.success("call_1", [Text(secret), Text("b")])
    shown = [str(Text(secret)), str(Refusal(secret)), str(ToolResult("call_1", secret))]
    assert shown == [secret] * 3
    assert str(result) == f"{secret}\nb"
    for part in (Text(secret), Refusal(secret), ToolResult("call_1", secret), result):
        assert secret not in repr(part)


def test_the_search_finds_what_is_there() -> None:
    """The tests above can fail: an exception, its attributes and its ancestors are looked at."""
    secret = "zqzq0123456789abcdef"

    nothing: dict[str, Any] = {}

    def leak_by_context() -> None:
        try:
            nothing[secret]
        except KeyError:
            msg = "something else"
            raise InvalidInputError(msg) from None

    def leak_by_note() -> None:
        error = InvalidInputError("something else")
        error.add_note(base64.b64encode(secret.encode()).decode())
        raise error

    def leak_by_attribute() -> None:
        msg = "something else"
        raise dragoman.errors.WireError(msg, path=secret)

    def leak_by_warning() -> None:
        warnings.warn(secret, stacklevel=1)

    for leak in (leak_by_context, leak_by_note, leak_by_attribute, leak_by_warning):
        with pytest.raises(AssertionError):
            drive(secret, leak, "a leak")
