"""Properties of every dialect's rules: each is exercised, and none fails on any JSON."""

from __future__ import annotations

import copy
import json
import sys
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dragoman
from dragoman.wire.violations import Violation
from tests.corpus import Corpus
from tests.wire.anthropic.test_rules import BOOK as ANTHROPIC
from tests.wire.gemini.test_rules import BOOK as GEMINI
from tests.wire.ollama.test_rules import BOOK as OLLAMA
from tests.wire.openai_chat.test_rules import BOOK as CHAT
from tests.wire.openai_responses.test_rules import BOOK as RESPONSES
from tests.wire.recorded import bodies
from tests.wire.rulebook import Book, Case
from tests.wire.test_hostile import _places, _put, json_values

BOOKS = (CHAT, RESPONSES, ANTHROPIC, GEMINI, OLLAMA)
_SAMPLED = [CHAT, *(pytest.param(book, marks=pytest.mark.thorough) for book in BOOKS[1:])]
CASES = [(book, case) for book in BOOKS for case in book.cases]
SECRET = "zqzq0123456789abcdef"
_NAMES = {
    "openai-chat": ("messages", "tools", "temperature", "response_format", "functions", "role",
                    "content", "tool_calls", "function", "arguments", "reasoning_effort"),
    "openai-responses": ("input", "tools", "text", "store", "max_output_tokens", "reasoning",
                         "type", "call_id", "id", "output", "role", "content", "phase"),
    "anthropic": ("messages", "tools", "system", "thinking", "tool_choice", "max_tokens", "role",
                  "content", "type", "source", "input_schema", "strict", "$defs", "citations"),
    "gemini": ("contents", "tools", "systemInstruction", "toolConfig", "generationConfig", "parts",
               "tool_config", "functionCall", "functionResponse", "function_declarations"),
    "ollama": ("model", "messages", "role", "content", "images", "tool_calls", "function", "tools",
               "parameters", "properties", "anyOf", "options", "stop", "think", "keep_alive"),
}  # fmt: skip


def _name(book: Book) -> str:
    return book.dialect


def _case_name(value: object) -> str | None:
    if isinstance(value, Case):
        return value.name
    return value.dialect if isinstance(value, Book) else None


def test_every_dialect_has_a_book() -> None:
    """A dialect that is added has its rules tried, or this fails."""
    judged = {name for name in dragoman.dialects() if hasattr(dragoman.dialect(name), "check")}
    assert {book.dialect for book in BOOKS} == judged == set(dragoman.dialects())


@pytest.mark.parametrize("book", BOOKS, ids=_name)
def test_every_rule_has_its_rows(book: Book) -> None:
    """No rule is without a body that breaks it and one that does not."""
    names = [rule.find.__name__ for rule in book.rules]
    assert len(set(names)) == len(names)
    assert {name for name, rows in book.rows.items() if rows} == set(names)
    assert set(book.targets) <= set(names)


@pytest.mark.parametrize(("book", "case"), CASES, ids=_case_name)
def test_a_rule_finds_what_breaks_it(book: Book, case: Case) -> None:
    """The wrong body is found out at that path; the right one passes."""
    assert case.path in book.found(case.name, case.wrong)
    assert book.found(case.name, case.right) == []


@pytest.mark.parametrize(("book", "case"), CASES, ids=_case_name)
def test_a_body_is_judged_alike_as_text(book: Book, case: Case) -> None:
    """JSON text, its bytes and the values that it stands for are one to `check`."""
    target = book.target(case.name)
    found = book.check(case.wrong, target)
    text = json.dumps(case.wrong)
    assert book.check(text, target) == found
    assert book.check(text.encode(), target) == found


@pytest.mark.parametrize("book", BOOKS, ids=_name)
@pytest.mark.parametrize("body", [b"[]", "3", b"{", b"\xff", None, 7, [], "[" * 100_000])
def test_what_is_no_object_is_told(book: Book, body: Any) -> None:
    """Anything may be checked."""
    (found,) = book.check(body)
    assert (found.rule, found.severity, found.path) == ("shape", "error", "$")


def _bodies(book: Book) -> st.SearchStrategy[Any]:
    """JSON that has some of the dialect's names in it, at any depth."""
    names = st.sampled_from(_NAMES[book.dialect])
    inner = st.recursive(
        json_values,
        lambda one: st.lists(one, max_size=3) | st.dictionaries(names, one, max_size=4),
        max_leaves=12,
    )
    return st.dictionaries(names, inner | st.lists(inner, max_size=3), max_size=4) | json_values


def _targets(book: Book) -> list[Any]:
    return [None, book.usual, *book.targets.values()]


@pytest.mark.parametrize("book", BOOKS, ids=_name)
@given(data=st.data())
def test_any_json_gives_a_list(book: Book, data: st.DataObject) -> None:
    """No body is too strange."""
    body = data.draw(_bodies(book))
    assert isinstance(book.check(body, data.draw(st.sampled_from(_targets(book)))), list)


@pytest.mark.parametrize("book", BOOKS, ids=_name)
@given(data=st.data())
def test_a_body_with_one_thing_wrong_gives_a_list(book: Book, data: st.DataObject) -> None:
    """A body in which any one value was replaced by any other does no harm."""
    case = data.draw(st.sampled_from(list(book.cases)))
    body = data.draw(st.sampled_from([case.wrong, case.right]))
    path = data.draw(st.sampled_from(_places(body)))
    changed = _put(body, path, data.draw(json_values))
    assert isinstance(book.check(changed, book.target(case.name)), list)


def _tell(found: list[Violation]) -> str:
    return "".join(f"{one.path} {one.message} {one!r}" for one in found)


@pytest.mark.parametrize("book", BOOKS, ids=_name)
def test_findings_quote_nothing(book: Book) -> None:
    """Neither path nor message holds what stood in the body, as a value or as a name."""
    for case in book.cases:
        if len(str(case.wrong)) > 10_000:
            continue  # it is about size
        for path in _places(case.wrong):
            for planted in (SECRET, {SECRET: 1}, [SECRET]):
                found = book.check(_put(case.wrong, path, planted), book.target(case.name))
                assert SECRET not in _tell(found)


@pytest.mark.parametrize("book", BOOKS, ids=_name)
def test_names_that_are_made_up_are_not_told(book: Book) -> None:
    """Nor does a path name a field that the dialect does not have, wherever it stands."""
    for case in book.cases:
        if len(str(case.wrong)) > 10_000:
            continue
        for path in _places(case.wrong):
            body = copy.deepcopy(case.wrong)
            at: Any = body
            for key in path:
                at = at[key]
            if isinstance(at, dict):
                at[SECRET] = {SECRET: SECRET}
                assert SECRET not in _tell(book.check(body, book.target(case.name)))


# --- size

_DEEP = 20_000


def _nested(levels: int) -> dict[str, Any]:
    """A schema that many levels deep, in every way that schemas nest."""
    schema: dict[str, Any] = {"type": "object"}
    for level in range(levels):
        ways: tuple[dict[str, Any], ...] = (
            {"properties": {"a": schema}}, {"items": schema}, {"anyOf": [schema]},
            {"$defs": {"a": schema}}, {"any_of": [schema]},
        )  # fmt: skip
        schema = {"type": "object", **ways[level % len(ways)]}
    return schema


class Word(str):
    """A text that counts how often it is compared."""

    __slots__ = ()
    compared = 0

    def __eq__(self, other: object) -> bool:
        Word.compared += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


def _schema(size: int) -> dict[str, Any]:
    names = [Word(f"p{number}") for number in range(size)]
    return {
        "type": "object",
        "properties": {name: {"type": "string", "enum": ["a"]} for name in names},
        "required": [Word(name) for name in names],
        "additionalProperties": False,
    }


def _chat(size: int) -> dict[str, Any]:
    messages: list[Any] = [{"role": "user", "content": "Hi"}]
    for number in range(size // 4):
        function = {"name": Word("f"), "arguments": '{"a":1}'}
        call = {"id": Word(f"c{number}"), "type": "function", "function": function}
        said = {"role": "assistant", "content": None, "tool_calls": [call]}
        messages += [said, {"role": "tool", "tool_call_id": Word(f"c{number}"), "content": "x"}]
        messages += [{"role": "assistant", "content": "x"}, {"role": "user", "content": "x"}]
    tools: list[Any] = [{"type": "function", "function": {"name": Word(f"f{n}"), "strict": True,
              "parameters": _schema(1)}} for n in range(size // 4)]  # fmt: skip
    tools.append({"type": "function", "function": {"name": "f", "strict": True,
                  "parameters": _schema(size)}})  # fmt: skip
    # All results of one message, too.
    many = [{"id": Word(f"d{n}"), "type": "function", "function": {"name": "f", "arguments": ""}}
            for n in range(size)]  # fmt: skip
    messages.append({"role": "assistant", "content": None, "tool_calls": many})
    messages += [{"role": "tool", "tool_call_id": Word(f"d{n}"), "content": ""}
                 for n in reversed(range(size))]  # fmt: skip
    return {"model": "m", "messages": messages, "tools": tools}


def _responses(size: int) -> dict[str, Any]:
    items: list[Any] = []
    for n in range(size // 4):
        items.append({"type": "reasoning", "id": Word(f"rs_{n}"), "summary": []})
        items.append({"type": "function_call", "id": Word(f"fc_{n}"), "call_id": Word(f"c{n}"),
                      "name": "f", "arguments": "{}"})  # fmt: skip
    items += [{"type": "function_call_output", "call_id": Word(f"c{n}"), "output": "x"}
              for n in reversed(range(size // 4))]  # fmt: skip
    tools = [{"type": "function", "name": Word(f"f{n}"), "strict": True, "parameters": _schema(1)}
             for n in range(size)]  # fmt: skip
    tools.append({"type": "function", "name": "f", "strict": True, "parameters": _schema(size)})
    return {"model": "m", "input": items, "tools": tools}


def _anthropic(size: int) -> dict[str, Any]:
    messages: list[Any] = [{"role": "user", "content": "Hi"}]
    for number in range(size // 2):
        use = {"type": "tool_use", "id": Word(f"t{number}"), "name": "f", "input": {}}
        result = {"type": "tool_result", "tool_use_id": Word(f"t{number}"), "content": "x"}
        messages += [{"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]
    uses = [{"type": "tool_use", "id": Word(f"u{n}"), "name": "f", "input": {}}
            for n in range(size)]  # fmt: skip
    results = [{"type": "tool_result", "tool_use_id": Word(f"u{n}"), "content": ""}
               for n in reversed(range(size))]  # fmt: skip
    messages += [{"role": "assistant", "content": uses}, {"role": "user", "content": results}]
    definitions = {f"A{n}": {"$ref": f"#/$defs/A{n + 1}"} for n in range(size)}
    schema = {**_schema(size), "$defs": definitions}
    tools = [{"name": Word(f"f{n}"), "input_schema": _schema(1)} for n in range(size)]
    return {"model": "m", "max_tokens": 5, "messages": messages,
            "tools": [*tools, {"name": "f", "strict": True, "input_schema": schema}]}  # fmt: skip


def _gemini(size: int) -> dict[str, Any]:
    contents: list[Any] = [{"role": "user", "parts": [{"text": "Hi"}]}]
    for number in range(size // 2):
        call = {"functionCall": {"name": "f", "id": Word(f"c{number}")}}
        done = {"functionResponse": {"name": "f", "id": Word(f"c{number}"), "response": {}}}
        contents += [{"role": "model", "parts": [call]}, {"role": "user", "parts": [done]}]
    names = [Word(f"f{n}") for n in range(size)]
    declared: list[Any] = [{"name": name, "parameters": _schema(1)} for name in names]
    declared.append({"name": "f", "parameters": _schema(size)})
    allowed = [Word(f"f{n}") for n in reversed(range(size))]
    calling = {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": allowed}}
    return {"contents": contents, "tools": [{"functionDeclarations": declared}],
            "toolConfig": calling}  # fmt: skip


def _ollama(size: int) -> dict[str, Any]:
    calls = [{"id": Word(f"c{n}"), "function": {"name": Word(f"f{n}"), "arguments": {}}}
             for n in range(size)]  # fmt: skip
    messages: list[Any] = [{"role": "assistant", "content": "", "tool_calls": calls}]
    messages += [{"role": "tool", "content": "", "tool_call_id": Word(f"c{n}")}
                 for n in reversed(range(size))]  # fmt: skip
    function = {"name": "f", "parameters": _schema(size)}
    return {"model": "m", "messages": messages, "tools": [{"function": function}] * size}


_MADE: dict[str, Callable[[int], dict[str, Any]]] = {
    "openai-chat": _chat,
    "openai-responses": _responses,
    "anthropic": _anthropic,
    "gemini": _gemini,
    "ollama": lambda size: {**_ollama(size), "tools": _ollama(size)["tools"][:1]},
}


def _work(book: Book, size: int, target: Any) -> int:
    """How many lines are run and how many texts compared, to judge a body of that size."""
    body = _MADE[book.dialect](size)
    lines = 0

    def trace(_frame: Any, event: str, _argument: Any) -> Any:
        nonlocal lines
        lines += event == "line"
        return trace

    before, Word.compared = sys.gettrace(), 0
    sys.settrace(trace)
    try:
        book.check(body, target)
    finally:
        sys.settrace(before)
    return lines + Word.compared


@pytest.mark.parametrize("book", BOOKS, ids=_name)
def test_work_grows_with_the_body(book: Book) -> None:
    """Four times the body is four times the work: messages, calls, tools and schemas alike."""
    for target in {None, book.usual, *book.targets.values()}:
        _work(book, 4, target)  # so that all is imported
        few, many = _work(book, 60, target), _work(book, 240, target)
        assert many < 4.2 * few


@pytest.mark.parametrize("book", _SAMPLED, ids=_name)
def test_large_bodies_are_judged(book: Book) -> None:
    """Twenty thousand messages, five thousand tools: a list, in the time of one pass."""
    assert isinstance(book.check(_MADE[book.dialect](5_000)), list)
    body = copy.deepcopy(_MADE[book.dialect](4))
    for key in ("messages", "contents", "input"):
        if key in body:
            body[key] = (body[key] * 20_000)[:20_000]
    assert isinstance(book.check(body), list)


@pytest.mark.parametrize("book", BOOKS, ids=_name)
def test_deep_bodies_are_judged(book: Book) -> None:
    """However deep a schema nests, or anything else in a body."""
    body = _MADE[book.dialect](4)
    schema = _nested(_DEEP)
    for tool in body["tools"]:
        holder = tool.get("function") or (tool.get("functionDeclarations") or [tool])[0]
        holder["parameters" if "parameters" in holder else "input_schema"] = schema
        holder["strict"] = True
    for key in ("messages", "contents", "input"):
        body[key] = [*body.get(key, ()), schema]
    assert isinstance(book.check(body), list)
    _taken_apart(schema)


def _taken_apart(schema: Any) -> None:
    """Free it level by level: Python would do so in one breath, and run out of it."""
    pending = [schema]
    while pending:
        node = pending.pop()
        if isinstance(node, (dict, list)):
            pending += node.values() if isinstance(node, dict) else node
            node.clear()


def test_long_texts_are_judged() -> None:
    """No pattern goes over a text more than once."""
    digits, lines = "1" * 200_000, "\n" * 200_000 + "!"
    assert OLLAMA.check({"model": "m", "keep_alive": digits}) != []
    image = {"role": "user", "content": "", "images": [lines, "A" * 200_000 + "!" * 4]}
    assert len(OLLAMA.check({"model": "m", "messages": [image]})) == 2
    url = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{lines}"}}
    assert CHAT.check({"messages": [{"role": "user", "content": [url]}]}) != []
    signed = {"role": "user", "parts": [{"text": "", "thoughtSignature": "=" * 200_000}]}
    assert GEMINI.check({"contents": [signed]}) != []


@pytest.mark.corpus
@pytest.mark.parametrize("book", BOOKS, ids=_name)
@given(data=st.data())
def test_recordings_with_one_thing_wrong_give_a_list(
    corpus: Corpus, book: Book, data: st.DataObject
) -> None:
    """Real requests in which a value was replaced are judged, and nothing of it is told."""
    wires = [one.wire for one in bodies(corpus, book.dialect, "core") if one.kind == "request"]
    wire = dict(data.draw(st.sampled_from(wires)))
    path = data.draw(st.sampled_from(_places(wire)))
    planted = data.draw(st.sampled_from([SECRET, {SECRET: [SECRET]}]) | json_values)
    found = book.check(_put(wire, path, planted))
    assert isinstance(found, list)
    assert SECRET not in _tell(found)
