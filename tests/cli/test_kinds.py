"""Recognizing the kind of a document."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dragoman import Message, Messages, MessageStore, Request, Response
from dragoman.errors import DragomanError
from dragoman.model.conversation import ConversationHistory, Policy
from dragoman.providers.documents.reading import AUTO, CANONICAL, Reader
from tests.cli.samples import ANSWERS, HISTORIES, REQUESTS, SECRET
from tests.corpus import Corpus

DIALECTS = sorted(REQUESTS)


def read(value: Any, source: str = AUTO) -> Any:
    """A document that was read."""
    return Reader(source).read(json.dumps(value).encode())


@pytest.mark.parametrize("name", DIALECTS)
@pytest.mark.parametrize("auto", [True, False])
def test_requests_responses_and_histories_are_recognized(name: str, auto: bool) -> None:
    """In every dialect, named or not."""
    source = AUTO if auto else name
    assert isinstance(read(REQUESTS[name], source).value, Request)
    assert isinstance(read(ANSWERS[name], source).value, Response)
    assert isinstance(read(HISTORIES[name], source).value, Messages)


@pytest.mark.parametrize("name", DIALECTS)
def test_the_dialect_is_detected(name: str) -> None:
    """For requests, responses and histories alike."""
    for kind in (REQUESTS, ANSWERS, HISTORIES):
        assert read(kind[name]).dialect == name


def test_a_response_may_repeat_its_input() -> None:
    """And a request may have a `usage` field."""
    answer = {**ANSWERS["openai-responses"], "input": [{"role": "user", "content": "Hi"}]}
    assert isinstance(read(answer).value, Response)
    asked = {**REQUESTS["openai-chat"], "usage": {"include": True}}
    assert isinstance(read(asked).value, Request)


MESSAGES = Messages(Message.system("Be brief."), Message.user("Hi"))


@pytest.mark.parametrize("source", [AUTO, CANONICAL])
@pytest.mark.parametrize(
    "document",
    [
        MESSAGES,
        ConversationHistory(MESSAGES, policy=Policy.STRICT),
        MessageStore.from_messages(MESSAGES),
    ],
    ids=lambda document: type(document).__name__,
)
def test_our_own_histories_are_read(source: str, document: Any) -> None:
    """Every canonical document that holds one conversation."""
    found = Reader(source).read(document.to_json())
    assert found.dialect == CANONICAL
    assert found.value == MESSAGES


@pytest.mark.parametrize("source", [AUTO, CANONICAL])
def test_our_own_requests_and_responses_are_read(source: str) -> None:
    """Each is read as its own kind."""
    request = Request(model="m", messages=tuple(MESSAGES))
    assert Reader(source).read(request.to_json()).value == request
    response = read(ANSWERS["anthropic"]).value
    assert Reader(source).read(response.to_json()).value == response


@pytest.mark.parametrize("source", [AUTO, CANONICAL])
def test_a_list_of_canonical_messages_is_a_history(source: str) -> None:
    """It needs no document around it."""
    bare = json.loads(MESSAGES.to_json())["value"]
    assert read(bare, source).value == MESSAGES


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (7, "a document must be a JSON object or an array of messages"),
        (None, "a document must be a JSON object or an array of messages"),
        ({"role": "user", "content": SECRET}, "put the messages of a conversation into one array"),
        ({"type": "function_call", "call_id": "1", "name": "f", "arguments": ""}, "one array"),
        ({"role": "user", "parts": [{"text": SECRET}]}, "one array"),
        ({"error": {"message": SECRET}}, "can't detect the dialect"),
        ({"greeting": SECRET}, "can't detect the dialect"),
        ({"dragoman": 1, "kind": "Text", "value": {}}, "not a conversation"),
        ({"dragoman": 99, "kind": "Messages", "value": []}, "format version 99"),
        ({"messages": SECRET}, ""),
        ([SECRET], ""),
        ([[]], ""),
    ],
)
def test_other_values_are_rejected(value: Any, problem: str) -> None:
    """The error says what to do and quotes nothing."""
    with pytest.raises(DragomanError) as caught:
        read(value)
    assert problem in str(caught.value)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("name", DIALECTS)
@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ({"error": {"message": SECRET}}, "a provider's error"),
        ({"role": "user", "content": "Hi"}, "one array"),
    ],
)
def test_no_dialect_accepts_errors_or_single_messages(name: str, value: Any, problem: str) -> None:
    """Not even those whose requests need no messages."""
    with pytest.raises(DragomanError, match=problem):
        read(value, name)


def test_canonical_accepts_only_canonical_documents() -> None:
    """A provider's request is rejected."""
    with pytest.raises(DragomanError, match="not a canonical document"):
        read(REQUESTS["anthropic"], CANONICAL)


ENDINGS = (":generateContent", "/chat/completions", "/responses", "/messages", "/api/chat")


@pytest.mark.corpus
def test_recorded_bodies_are_recognized(corpus: Corpus) -> None:
    """Recorded requests are requests, and recorded answers are responses."""
    wrong: list[str] = []
    for recording in corpus.select(status=200, streaming=False):
        name = recording.row.provider_api.replace("_", "-")
        if name not in DIALECTS or not recording.request_path.endswith(ENDINGS):
            continue
        for kind, body in (
            ("Request", recording.request_body),
            ("Response", recording.response_body),
        ):
            if isinstance(body, dict) and type(read(body, name).value).__name__ != kind:
                wrong.append(recording.row.file)
    assert wrong == []


@pytest.mark.parametrize("before", [[], [{"role": "user", "content": "Hi"}]])
def test_items_of_unknown_form_are_rejected(before: list[Any]) -> None:
    """LangChain's dicts would otherwise be read as blank messages, and lose their text."""
    item = {"type": "human", "data": {"content": SECRET}}
    with pytest.raises(DragomanError, match="from_langchain") as raised:
        read([*before, item])
    assert SECRET not in str(raised.value)
    with pytest.raises(DragomanError, match="neither a message"):
        read([*before, {"speaker": "Ana", "says": SECRET}])
