"""What every client does with every provider, and the expected outcome."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import pytest
from pydantic import BaseModel

from dragoman.model.media import Image
from dragoman.model.messages import Message
from dragoman.model.responses import Response
from dragoman.model.tools import ToolCall, ToolResult
from tests.gateway.matrix.behind import Answer, Behind, made, reading
from tests.gateway.matrix.conversation import Called, Conversation, Offered, Seen
from tests.gateway.matrix.failing import cut_answers, failure
from tests.gateway.matrix.native import Said
from tests.wire.clients import seals

FINAL = Said("It is 31 °C in Mostar, and the Old Bridge is open.")


class Weather(BaseModel):
    """The form of an answer."""

    city: str
    celsius: int


def _png() -> bytes:
    """An image of one red pixel."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        check = struct.pack(">I", zlib.crc32(kind + data))
        return struct.pack(">I", len(data)) + kind + data + check

    head = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    data = zlib.compress(b"\x00\xff\x00\x00")
    chunks = chunk(b"IHDR", head) + chunk(b"IDAT", data) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + chunks


PICTURE = _png()


class Cell:
    """One client with one provider, streaming or not; records what was lost."""

    def __init__(
        self, client: Conversation, back: str, behind: Behind, answers: list[Answer], *,
        stream: bool, model: str,
    ) -> None:  # fmt: skip
        self.client = client
        self.back = back
        self.behind = behind
        self.stream = stream
        self.answers = answers
        self.model = model
        self.lost: set[str] = set()
        behind.script(back, model, *answers)

    def keeps(self, what: str, is_kept: bool) -> None:
        """Record a loss unless something was kept; the table of losses lists the expected ones."""
        if not is_kept:
            self.lost.add(what)

    def expected(self, number: int) -> Response:
        """The provider's answer, decoded by its own dialect."""
        return reading(self.back, self.answers[number], stream=self.stream)

    def ask(self, number: int) -> Seen:
        """What the client sees for the request of that number, compared with the answer."""
        seen, said = self.client.answer(stream=self.stream), self.expected(number)
        asked = self.behind.asked[number]
        assert not asked.problems
        assert seen.text == said.message.text
        assert [(each.name, dict(each.arguments)) for each in seen.calls] == [
            (call.name, call.arguments) for call in said.message.tool_calls
        ]
        self._count(seen, said)
        return seen

    def _count(self, seen: Seen, said: Response) -> None:
        assert said.usage is not None
        usage = (said.usage.total_input, said.usage.total_output)
        self.keeps("token counts", (seen.usage.input, seen.usage.output) == usage)

    def parts(self, number: int, kind: type[Any]) -> list[Any]:
        """The parts of that kind in a request that the provider received."""
        return [
            part
            for message in self.behind.request(number).messages
            for part in message.parts
            if isinstance(part, kind)
        ]


def text(cell: Cell) -> None:
    """A question and its response."""
    cell.client.say("Where is the Old Bridge?")
    cell.ask(0)
    [asked] = cell.behind.request(0).messages
    assert asked.text == "Where is the Old Bridge?"


def tools(cell: Cell) -> None:
    """Tool calls (one, or three in parallel), their results, and the final response."""
    calls = cell.expected(0).message.tool_calls
    cell.client.tools = list(_offered(cell.expected(0).message).values())
    cell.client.say("How warm is it in Mostar?")
    seen = cell.ask(0)
    assert {tool.name for tool in cell.behind.request(0).tools} >= {call.name for call in calls}
    results = [(each, f"{31 + number} °C") for number, each in enumerate(seen.calls)]
    cell.client.give(results)
    cell.ask(1)
    _check_results(cell, results)


def _check_results(cell: Cell, results: list[tuple[Called, str]]) -> None:
    """The provider gets its calls back, each with its result."""
    sent = {part.id: part for part in cell.parts(1, ToolCall)}
    got = cell.parts(1, ToolResult)
    assert len(sent) == len(got) == len(results)
    for result, (called, content) in zip(got, results, strict=True):
        assert sent[result.call_id].name == called.name
        assert sent[result.call_id].arguments == called.arguments
        assert content in result.text


def _offered(message: Message) -> dict[str, Offered]:
    """Functions that match the calls of a message."""
    return {
        call.name: Offered(call.name, _schema(call.arguments or {})) for call in message.tool_calls
    }


def _schema(arguments: Mapping[str, Any]) -> dict[str, Any]:
    kinds = {str: "string", bool: "boolean", int: "number", float: "number", list: "array"}
    properties = {
        name: {"type": kinds.get(type(value), "object")} for name, value in arguments.items()
    }
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def image(cell: Cell) -> None:
    """An image in the prompt: the provider gets the same bytes."""
    cell.client.say("What is in the picture?", PICTURE)
    cell.ask(0)
    [picture] = cell.parts(0, Image)
    assert picture.content == PICTURE
    assert picture.mime == "image/png"


def structured(cell: Cell) -> None:
    """JSON by a schema: the provider gets the schema, the client gets the value."""
    cell.client.say("How warm is it in Mostar?")
    assert cell.client.parse(Weather, stream=cell.stream) == Weather(city="Mostar", celsius=31)
    asked = cell.behind.asked[0]
    assert not asked.problems
    output = cell.behind.request(0).output
    assert output is not None
    assert output.schema is not None
    assert set(output.schema["properties"]) == {"city", "celsius"}


def thinking(cell: Cell) -> None:
    """Thinking, then text or a tool call; the second turn returns all sealed state."""
    client = cell.client
    client.thinks = True
    client.tools = list(_offered(cell.expected(0).message).values())
    client.say("Where is the Old Bridge?")
    seen = cell.ask(0)
    shown = cell.expected(0).message.thinking
    cell.keeps("thinking", seen.thinking.strip() == (shown or "").strip())
    if seen.calls:
        client.give([(each, "31 °C") for each in seen.calls])
    else:
        client.say("Are you sure?")
    cell.ask(1)
    cell.keeps("sealed state", _is_sealed(cell))


def _is_sealed(cell: Cell) -> bool:
    """Whether the provider gets all its sealed state back, as its own client would send it.

    OpenAI encrypts a streamed item again in the complete response: either form is accepted.
    """
    own = seals(cell.back, _own_form(cell))
    got = seals(cell.back, cell.behind.asked[1].body)
    said = cell.answers[0].data
    same = [seal for seal in got if seal in own or seal[1].encode() in said]
    return [kind for kind, _ in own] == [kind for kind, _ in same]


def _own_form(cell: Cell) -> Any:
    """The first answer, as the provider's own client would send it back."""
    from dragoman.model.requests import Request
    from dragoman.providers.registry import provider
    from dragoman.wire.dialect import dialect
    from tests.gateway.matrix.behind import KINDS

    response = cell.expected(0)
    messages = [Message.user("?"), Message("assistant", response.message.parts_with_origin())]
    request = Request(model=cell.model, messages=(*messages, Message.user("!")))
    target = provider(KINDS[cell.back]).target(cell.model, cell.back)
    return dialect(cell.back).encode_request(request, target).body


def usage(cell: Cell) -> None:
    """Token counts, including cached and reasoning tokens if the provider reports them."""
    cell.client.say("Where is the Old Bridge?")
    seen, said = cell.ask(0).usage, cell.expected(0).usage
    assert said is not None
    if said.cache_read:
        cell.keeps("cached tokens", seen.cached == said.cache_read)
    if said.thinking:
        cell.keeps("reasoning tokens", seen.reasoning == said.thinking)


def errors(cell: Cell) -> None:
    """Every error raises the SDK's own exception for it, with the time to wait."""
    client = cell.client
    client.say("Where is the Old Bridge?")
    for status, kind in client.failures().items():
        cell.behind.script(cell.back, cell.model, failure(cell.back, status))
        with pytest.raises(kind) as raised:
            client.answer(stream=cell.stream)
        assert client.status(raised.value) // 100 == status // 100  # type: ignore[operator]
        if status == 429:
            cell.keeps("time to wait", client.retry_after(raised.value) == "7")


def cut(cell: Cell) -> None:
    """A stream that breaks off, at any point, raises an exception."""
    client = cell.client
    client.say("Where is the Old Bridge?")
    for answer in cut_answers(cell.answers[0], stream=cell.stream):
        cell.behind.script(cell.back, cell.model, answer)
        with pytest.raises(client.broken()):
            client.answer(stream=cell.stream)


class Scenario(NamedTuple):
    """A scenario, and the provider's answers in it."""

    name: str
    run: Callable[[Cell], None]
    said: tuple[Said, ...] = (FINAL,)

    def answers(self, back: str, *, stream: bool) -> list[Answer]:
        """The provider's answers."""
        return [made(back, each, stream=stream) for each in self.said]


_MOSTAR = ("weather", {"city": "Mostar"})
SCENARIOS = (
    Scenario("text", text),
    Scenario("tools", tools, (Said("I look.", (_MOSTAR,)), FINAL)),
    Scenario("parallel tools", tools, (
        Said(calls=(_MOSTAR, ("weather", {"city": "Jajce"}), ("bridge", {"name": "Old"}))), FINAL,
    )),
    Scenario("image", image),
    Scenario("structured output", structured, (Said('{"city": "Mostar", "celsius": 31}'),)),
    Scenario("thinking", thinking, (Said("In Mostar.", thinks=True), FINAL)),
    Scenario("thinking and tools", thinking, (Said("", (_MOSTAR,), thinks=True), FINAL)),
    Scenario("usage", usage),
    Scenario("errors", errors),
    Scenario("cut streams", cut),
)  # fmt: skip
