"""The real llama.cpp with a real model, on its three dialects.

Needs xllamacpp (`pip install 'dragoman[local]'`) and smollm2 in the user's cache, which
`DRAGOMAN_LOCAL=1` fetches (93 MB); skipped without.
"""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from dragoman.errors import ContextTooLong
from dragoman.model.events import PartDelta
from dragoman.model.jsontext import loads
from dragoman.model.messages import Message
from dragoman.model.requests import Output, Request, Sampling
from dragoman.model.responses import Response
from dragoman.model.roles import Role
from dragoman.model.tools import ToolChoice, ToolDefinition, ToolResult
from dragoman.model.usage import FinishReason
from dragoman.transport.local.model import LocalModel

_MAY_FETCH = os.environ.get("DRAGOMAN_LOCAL") == "1"

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("real_llama")]

DIALECTS = ("openai-chat", "openai-responses", "anthropic")
QUESTIONS = (
    "Name three colours.",
    "What is the capital of France?",
    "Tell me about Zürich, and about 東京. 🙂",
    "Repeat: 🙂🙂",  # the answer's first token is half a character
)
SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 20}, "is_big": {"type": "boolean"}},
    "required": ["name", "is_big"],
    "additionalProperties": False,
}
WEATHER = ToolDefinition(
    "weather",
    "The weather in a city",
    {
        "type": "object",
        "properties": {
            "city": {"type": "string", "maxLength": 20},
            "days": {"type": "integer", "minimum": 1, "maximum": 9},
        },
        "required": ["city", "days"],
        "additionalProperties": False,
    },
)
SQUARE = ToolDefinition(
    "square",
    "The square of a number",
    {
        "type": "object",
        "properties": {"number": {"enum": [3, 4, 5]}},
        "required": ["number"],
        "additionalProperties": False,
    },
)
OWN_TEMPLATE = (
    "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}"
    "{{ '<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face"
    "<|im_end|>\n' }}{% endif %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + "
    "'<|im_end|>' + '\n'}}{% endfor %}{% if add_generation_prompt %}"
    "{{ '<|im_start|>assistant\n' }}{% endif %}"
)
"""What the file of the model has."""
PARIS = Message.user("What is the weather in Paris for the next 3 days?")


@asynccontextmanager
async def _models() -> AsyncGenerator[dict[str, LocalModel]]:
    """The model in each dialect; they share one server."""
    models = {name: LocalModel("smollm2", dialect=name, fetch=_MAY_FETCH) for name in DIALECTS}
    try:
        yield models
    finally:
        for model in models.values():
            await model.close()


def _asked(*messages: Message, most: int = 40, output: Output | None = None) -> Request:
    sampling = Sampling(temperature=0, max_tokens=most)
    return Request(messages=messages, sampling=sampling, output=output)


def _with_tools(*messages: Message, choice: ToolChoice | None = None, most: int = 100) -> Request:
    return _asked(*messages, most=most).replace(tools=(WEATHER, SQUARE), tool_choice=choice)


async def _both(model: LocalModel, request: Request) -> list[Response]:
    """The answer, plain and streamed."""
    return [await model.send(request), await model.stream(request).collect()]


@pytest.mark.parametrize("question", QUESTIONS)
async def test_all_dialects_give_the_same_answer(question: str) -> None:
    """At temperature 0, the text and the token counts agree, plain and streamed."""
    request = _asked(Message.user(question))
    answers: dict[str, Response] = {}
    async with _models() as models:
        for name, model in models.items():
            answers[name] = await model.send(request)
            answers[f"{name}, streamed"] = await model.stream(request).collect()
    assert len({answer.text for answer in answers.values()}) == 1
    assert answers["anthropic"].text
    counts = {
        (answer.usage.total_input, answer.usage.total_output)
        for answer in answers.values()
        if answer.usage is not None
    }
    assert len(counts) == 1
    assert all(answer.usage is not None for answer in answers.values())
    assert {answer.model for answer in answers.values()} == {"smollm2"}


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_truncated_answer_has_its_finish_reason(dialect: str) -> None:
    """Also in Responses, where this server reports everything as completed; and for calls."""
    text = _asked(Message.user("Count to a hundred."), most=5)
    call = _with_tools(PARIS, choice=ToolChoice("required"), most=16)
    async with LocalModel("smollm2", dialect=dialect, fetch=_MAY_FETCH) as model:
        answers = [*await _both(model, text), *await _both(model, call)]
        whole = await model.send(_asked(Message.user(QUESTIONS[-1]), most=60))
    assert {answer.finish for answer in answers} == {FinishReason.LENGTH}
    assert whole.finish is FinishReason.STOP


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_conversation_can_be_continued(dialect: str) -> None:
    """Its answers are sent back and counted."""
    said = [Message.system("Answer in one word."), Message.user("What is the capital of France?")]
    counts: list[int] = []
    async with LocalModel("smollm2", dialect=dialect, fetch=_MAY_FETCH) as model:
        for _ in range(3):
            answer = await model.send(_asked(*said, most=10))
            said += [answer.message, Message.user("And of Italy?")]
            counts += [answer.usage.total_input] if answer.usage else []
    assert len(counts) == 3
    assert counts[0] < counts[1] < counts[2]


async def test_a_conversation_can_switch_dialects() -> None:
    """Each dialect gets the other's messages, and counts them alike."""
    said = [Message.user("What is the capital of France?")]
    async with _models() as models:
        for model in models.values():
            answer = await model.send(_asked(*said, most=10))
            said += [answer.message, Message.user("And of Italy?")]
        usages = [(await model.send(_asked(*said, most=1))).usage for model in models.values()]
    assert len({usage.total_input for usage in usages if usage is not None}) == 1
    assert None not in usages


@pytest.mark.parametrize("dialect", ["openai-chat", "openai-responses"])
async def test_a_schema_is_enforced(dialect: str) -> None:
    """By a grammar, so that even the smallest model complies."""
    output = Output(format="schema", schema=SCHEMA, name="town")
    request = _asked(Message.user("Name a town."), most=80, output=output)
    async with LocalModel("smollm2", dialect=dialect, fetch=_MAY_FETCH) as model:
        answers = await _both(model, request)
    for answer in answers:
        found = loads(answer.text)
        assert {key: type(value) for key, value in found.items()} == {"name": str, "is_big": bool}


# --- tools


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_required_tool_call_is_made(dialect: str) -> None:
    """The model chooses the tool, and the arguments match its schema."""
    request = _with_tools(PARIS, choice=ToolChoice("required"))
    async with LocalModel("smollm2", dialect=dialect, fetch=_MAY_FETCH) as model:
        answers = await _both(model, request)
    for answer in answers:
        assert answer.finish is FinishReason.TOOL_CALLS
        assert answer.text == ""
        (call,) = answer.tool_calls
        assert call.name == "weather"
        assert call.arguments == {"city": "Paris", "days": 3}


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_the_named_tool_is_called(dialect: str) -> None:
    """Even if it has nothing to do with the question."""
    request = _with_tools(PARIS, choice=ToolChoice("named", ("square",)))
    async with LocalModel("smollm2", dialect=dialect, fetch=_MAY_FETCH) as model:
        answers = await _both(model, request)
    for answer in answers:
        assert answer.tool_calls
        assert {call.name for call in answer.tool_calls} == {"square"}
        assert all(call.arguments["number"] in {3, 4, 5} for call in answer.tool_calls)


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_disabled_tools_are_not_called(dialect: str) -> None:
    """The answer is text."""
    request = _with_tools(PARIS, choice=ToolChoice("none"), most=20)
    async with LocalModel("smollm2", dialect=dialect, fetch=_MAY_FETCH) as model:
        answers = await _both(model, request)
    assert all(answer.text and not answer.tool_calls for answer in answers)


@pytest.mark.parametrize("dialect", ["openai-chat", "openai-responses"])
async def test_parallel_calls_can_be_disabled(dialect: str) -> None:
    """This server doesn't support that in the Anthropic dialect."""
    both = Message.user("What is the weather in Paris, and in Rome, for 3 days each?")
    choice = ToolChoice("required", parallel=False)
    async with LocalModel("smollm2", dialect=dialect, fetch=_MAY_FETCH) as model:
        answers = await _both(model, _with_tools(both, choice=choice))
    assert [len(answer.tool_calls) for answer in answers] == [1, 1]


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_tool_result_is_used(dialect: str) -> None:
    """The answer contains it, with and without tools in the request."""
    request = _with_tools(PARIS, choice=ToolChoice("required"))
    async with LocalModel("smollm2", dialect=dialect, fetch=_MAY_FETCH) as model:
        for called in await _both(model, request):
            (call,) = called.tool_calls
            result = Message(Role.TOOL, (ToolResult(call.id, "Sunny, 21 degrees"),))
            for answer in await _both(model, _with_tools(PARIS, called.message, result)):
                assert answer.finish is FinishReason.STOP
                assert "21" in answer.text


async def test_a_conversation_with_tools_can_switch_dialects() -> None:
    """Each dialect reads calls and results of the others, and all count them alike."""
    said = [PARIS]
    async with _models() as models:
        for model in models.values():
            called = await model.send(_with_tools(*said, choice=ToolChoice("required")))
            said += [called.message]
            results = [ToolResult(call.id, "Sunny, 21 degrees") for call in called.tool_calls]
            said += [Message(Role.TOOL, tuple(results))]
        usages = [(await model.send(_with_tools(*said, most=1))).usage for model in models.values()]
    assert None not in usages
    assert len({usage.total_input for usage in usages if usage is not None}) == 1


async def test_without_tools_our_template_equals_the_models() -> None:
    """The token counts are the same as with the file's own template."""
    talks = (
        [Message.user("Hello")],
        [Message.system("Be brief."), Message.user("Hi"), Message.assistant("Yes?"), PARIS],
    )
    for talk in talks:
        usages: list[int | None] = []
        for template in (None, OWN_TEMPLATE):
            async with LocalModel("smollm2", template=template, fetch=_MAY_FETCH) as model:
                answer = await model.send(_asked(*talk, most=12))
            usages += [answer.usage.total_input if answer.usage else None]
        assert usages[0] == usages[1] is not None


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_exceeding_the_context_has_its_own_error(dialect: str) -> None:
    """More tokens than the context holds."""
    async with LocalModel("smollm2", dialect=dialect, context=512, fetch=_MAY_FETCH) as model:
        with pytest.raises(ContextTooLong):
            await model.send(_asked(Message.user("word " * 2000)))


async def test_closing_a_stream_early_stops_the_server() -> None:
    """It answers the next request."""
    async with LocalModel("smollm2", fetch=_MAY_FETCH) as model:
        request = _asked(Message.user("Tell me a long story."), most=4000)
        async with model.stream(request) as stream:
            async for event in stream:
                if isinstance(event, PartDelta) and len(stream.response.text) > 20:
                    break
        assert not stream.is_complete
        assert (await model.send(_asked(Message.user("Hello"), most=5))).text
