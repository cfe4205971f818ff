"""`map_text`: every string is visited, whatever holds it; what does not change stays as it is."""

from __future__ import annotations

import re
from base64 import b64encode
from typing import Any

import msgspec
import pytest
from hypothesis import given

from dragoman import (
    Audio,
    File,
    Image,
    Message,
    Messages,
    Request,
    Response,
    Text,
    Thinking,
    ToolCall,
    ToolDefinition,
    ToolResult,
)
from dragoman.errors import InvalidInputError
from dragoman.model.parts import Citation, Opaque, Origin, ServerToolCall
from dragoman.model.requests import Output, Sampling, Service
from dragoman.model.responses import Choice
from dragoman.model.tool_calls import make_call
from dragoman.model.value import Value
from tests.model.anything import any_values

_UNSEEN = {"metadata", "origin"}
ADDRESS = "ada@example.org"


def redacted(text: str) -> str:
    """The text without addresses."""
    return re.sub(r"[\w.]+@[\w.]+\w", "[e-mail]", text)


def _strings(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [found for pair in value.items() for found in _strings(list(pair))]
    if isinstance(value, (list, tuple)):
        return [found for item in value for found in _strings(item)]
    if isinstance(value, Value):
        hidden = _UNSEEN | ({"id"} if isinstance(value, Message) else set())
        names = [name for name in value.__struct_fields__ if name not in hidden]
        return [found for name in names for found in _strings(getattr(value, name))]
    return []


@given(any_values())
def test_every_string_of_every_type_is_visited(value: Any) -> None:
    """No sign that the function removes is left in any field of any value, nor in a key."""
    planted = value.map_text(lambda text: f"{text}@")
    clean = planted.map_text(lambda text: text.replace("@", "#"))
    assert [text for text in _strings(clean) if "@" in text] == []
    assert type(clean) is type(value)


@given(any_values())
def test_what_stays_the_same_is_the_same(value: Any) -> None:
    """If the function changes nothing, the value itself is returned; also what is mapped again."""
    assert value.map_text(lambda text: text) is value
    once = value.map_text(lambda text: text.replace("a", "b"))
    assert once.map_text(lambda text: text.replace("a", "b")) is once


@given(any_values())
def test_names_stay_while_they_are_plain(value: Any) -> None:
    """A function that masks everything leaves ids, models, tools and plain keys alone."""
    masked = value.map_text(lambda text: "•" * len(text))
    for field in ("id", "call_id", "model", "dialect", "kind"):
        text = getattr(value, field, None)
        if isinstance(text, str) and re.fullmatch(r"\w{0,64}", text, re.ASCII):
            assert getattr(masked, field) == text


@pytest.mark.parametrize(
    "value",
    [
        Text(f"by {ADDRESS}", citations=(Citation(kind="url", quote=ADDRESS, title=ADDRESS),)),
        Image.from_url(f"https://x.example/?{ADDRESS}"),
        Audio.from_format("AAAA", "wav").replace(transcript=ADDRESS),
        File.from_bytes(f"To: {ADDRESS}".encode(), "text/plain", name=f"{ADDRESS}.txt"),
        File.from_bytes(f'{{"to": "{ADDRESS}"}}'.encode(), "application/ld+json"),
        ServerToolCall(name="search", input={"queries": [ADDRESS], "deep": {ADDRESS: 1}}),
        Opaque("gemini", [{"type": "card", "owner": {"mail": ADDRESS}}]),
        ToolResult.success("c", f'[{{"mail": "ada\\u0040example.org", "{ADDRESS}": "x"}}]'),
        ToolResult("c", "", data={"rows": [[ADDRESS]]}),
        ToolCall("c", "send", f'{{"to": "x", "to": "{ADDRESS}"}}'),
        ToolCall("c", "send", ADDRESS, kind="custom"),
        ToolDefinition.create("send", f"As {ADDRESS}.", {"type": "object", "properties": {
            "to": {"type": "string", "description": ADDRESS, "enum": [ADDRESS],
                   "anyOf": [{"default": ADDRESS}]}}}),
        Request(system=(Text(ADDRESS),), service=Service(user=ADDRESS, labels={"who": ADDRESS}),
                sampling=Sampling(stop=(ADDRESS,)), extras={"openai-chat": {"odd": [ADDRESS]}},
                output=Output(format="schema", schema={"title": ADDRESS}, description=ADDRESS)),
        Message.user("x", name=ADDRESS).with_extra("note", ADDRESS),
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_places_of_text(value: Any) -> None:
    """Each place where a text may be: readable, escaped, encoded, as a key."""
    made = value.map_text(redacted)
    plain = msgspec.json.encode(made)
    assert ADDRESS.encode() not in plain
    assert b64encode(ADDRESS.encode())[:16] not in plain
    assert not isinstance(made, File) or b"[e-mail]" in made.content
    assert b"u0040" not in plain
    assert made != value or made.extras != value.extras


def test_arguments_keep_their_bytes_around_a_change() -> None:
    """Of JSON text, only the strings that change are written anew; numbers and spaces stay."""
    raw = f'{{ "n": 1.50, "to" : "{ADDRESS}",  "z": [ 1e3, "é\\u00e9" ] }}'
    made = ToolCall("c", "send", raw).map_text(redacted)
    assert made.raw == raw.replace(ADDRESS, "[e-mail]")
    assert made.arguments["to"] == "[e-mail]"  # nothing is left of what was parsed before
    assert ToolCall("c", "send", '{"a": 1}').map_text(str.upper).raw == '{"a": 1}'
    cut = make_call("c", "send", f"{{ {ADDRESS}")
    assert cut.map_text(redacted).raw == "{ [e-mail]"


def test_keys_that_become_the_same_keep_their_values() -> None:
    """Two addresses as keys become two keys."""
    call = ToolCall("c", "f", {"a@example.org": 1, "b@example.org": 2}).map_text(redacted)
    assert call.arguments == {"[e-mail]": 1, "[e-mail] (2)": 2}


def test_seals_go_with_the_text_they_belong_to() -> None:
    """Changed thinking is unsigned; what did not change keeps its seal."""
    sealed = Thinking(f"From {ADDRESS}", data="ZGF0YQ==", signature="c2ln", item_id="rs_1")
    made = sealed.map_text(redacted)
    assert (made.text, made.data, made.signature, made.item_id) == (
        "From [e-mail]",
        None,
        None,
        None,
    )
    other = Thinking("Nothing private", signature="c2ln")
    assert other.map_text(redacted) is other
    call = ToolCall("c", "f", {"to": ADDRESS}, signature="c2ln").map_text(redacted)
    assert call.signature is None


def test_a_message_keeps_its_id_but_is_no_longer_as_it_came() -> None:
    """As after any edit: the id stays, and the origin in a request goes."""
    message = Message.user(ADDRESS, metadata={"owner": ADDRESS}, origin=Origin(dialect="gemini"))
    made = message.map_text(redacted)
    assert (made.id, made.metadata, made.origin) == (message.id, message.metadata, None)
    answer = message.replace(origin=Origin(dialect="gemini", provider="google", model="m"))
    assert answer.map_text(redacted).origin == answer.origin


def test_token_logs_go_with_a_changed_message() -> None:
    """The log probabilities of a response spell its text, token by token."""
    tokens = {"content": [{"token": "ada"}, {"token": "@example.org"}]}
    response = Response(choices=(Choice(0, Message.assistant(ADDRESS), logprobs=tokens),))
    made = response.map_text(redacted)
    assert (made.text, made.choices[0].logprobs) == ("[e-mail]", None)


def test_messages_are_mapped_one_by_one() -> None:
    """Those in which nothing changes are the same objects, or the whole sequence is."""
    messages = Messages.from_any(["hello", f"I am {ADDRESS}"])
    made = messages.map_text(redacted)
    assert made[0] is messages[0]
    assert made[1].text == "I am [e-mail]"
    assert messages[:1].map_text(redacted)[0] is messages[0]
    whole = Messages(Message.user("a"))
    assert whole.map_text(redacted) is whole


def test_the_function_must_return_text() -> None:
    """Anything else raises, and says what came back."""
    with pytest.raises(InvalidInputError, match="must return str, not NoneType"):
        Text("a").map_text(lambda _: None)  # type: ignore[arg-type,return-value]  # on purpose
