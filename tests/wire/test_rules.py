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

pytestmark = pytest.mark.whole

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


def test_every_dialect_has_a_rulebook() -> None:
    """Every dialect, including a new one, has examples for its rules."""
    judged = {name for name in dragoman.dialects() if hasattr(dragoman.dialect(name), "check")}
    assert {book.dialect for book in BOOKS} == judged == set(dragoman.dialects())


@pytest.mark.parametrize("book", BOOKS, ids=_name)
def test_every_rule_has_examples(book: Book) -> None:
    """Every rule has a body that breaks it and one that does not."""
    names = [rule.find.__name__ for rule in book.rules]
    assert len(set(names)) == len(names)
    assert {name for name, rows in book.rows.items() if rows} == set(names)
    assert set(book.targets) <= set(names)


@pytest.mark.parametrize(("book", "case"), CASES, ids=_case_name)
def test_a_rule_finds_what_breaks_it(book: Book, case: Case) -> None:
    """The wrong body has a finding at the path; the right one has none."""
    assert case.path in book.found(case.name, case.wrong)
    assert book.found(case.name, case.right) == []


@pytest.mark.parametrize(("book", "case"), CASES, ids=_case_name)
def test_text_and_values_have_the_same_findings(book: Book, case: Case) -> None:
    """JSON text, bytes and parsed values have the same findings."""
    target = book.target(case.name)
    found = book.check(case.wrong, target)
    text = json.dumps(case.wrong)
    assert book.check(text, target) == found
    assert book.check(text.encode(), target) == found


@pytest.mark.parametrize("book", BOOKS, ids=_name)
@pytest.mark.parametrize("body", [b"[]", "3", b"{", b"\xff", None, 7, [], "[" * 100_000])
def test_a_body_that_is_no_object_is_a_finding(book: Book, body: Any) -> None:
    """Any value can be checked."""
    (found,) = book.check(body)
    assert (found.rule, found.severity, found.path) == ("shape", "error", "$")


def _bodies(book: Book) -> st.SearchStrategy[Any]:
    """JSON with some of the dialect's field names, at any depth."""
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
    """`check` returns a list for any body."""
    body = data.draw(_bodies(book))
    assert isinstance(book.check(body, data.draw(st.sampled_from(_targets(book)))), list)


@pytest.mark.parametrize("book", BOOKS, ids=_name)
@given(data=st.data())
def test_a_body_with_one_wrong_value_gives_a_list(book: Book, data: st.DataObject) -> None:
    """A body with any one value replaced raises nothing."""
    case = data.draw(st.sampled_from(list(book.cases)))
    body = data.draw(st.sampled_from([case.wrong, case.right]))
    path = data.draw(st.sampled_from(_places(body)))
    changed = _put(body, path, data.draw(json_values))
    assert isinstance(book.check(changed, book.target(case.name)), list)


def _tell(found: list[Violation]) -> str:
    return "".join(f"{one.path} {one.message} {one!r}" for one in found)


@pytest.mark.parametrize("book", BOOKS, ids=_name)
def test_findings_quote_nothing(book: Book) -> None:
    """Neither path nor message has a value or name from the body."""
    for case in book.cases:
        if len(str(case.wrong)) > 10_000:
            continue  # it is about size
        for path in _places(case.wrong):
            for planted in (SECRET, {SECRET: 1}, [SECRET]):
                found = book.check(_put(case.wrong, path, planted), book.target(case.name))
                assert SECRET not in _tell(found)


@pytest.mark.parametrize("book", BOOKS, ids=_name)
def test_unknown_names_are_not_in_paths(book: Book) -> None:
    """A path never has a field name that the dialect does not define."""
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
    """A schema of that many levels, nested in every possible way."""
    schema: dict[str, Any] = {"type": "object"}
    for level in range(levels):
        ways: tuple[dict[str, Any], ...] = (
            {"properties": {"a": schema}}, {"items": schema}, {"anyOf": [schema]},
            {"$defs": {"a": schema}}, {"any_of": [schema]},
        )  # fmt: skip
        schema = {"type": "object", **ways[level % len(ways)]}
    return schema


class Word(str):
    """A text that counts its comparisons."""

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
    """The number of executed lines and text comparisons for a body of that size."""
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
def test_work_is_linear_in_the_size(book: Book) -> None:
    """Four times the messages, calls, tools or schemas take four times the work."""
    for target in {None, book.usual, *book.targets.values()}:
        _work(book, 4, target)  # imports don't count
        few, many = _work(book, 60, target), _work(book, 240, target)
        assert many < 4.2 * few


@pytest.mark.parametrize("book", _SAMPLED, ids=_name)
def test_large_bodies_are_checked(book: Book) -> None:
    """Twenty thousand messages and five thousand tools are checked in one pass."""
    assert isinstance(book.check(_MADE[book.dialect](5_000)), list)
    body = copy.deepcopy(_MADE[book.dialect](4))
    for key in ("messages", "contents", "input"):
        if key in body:
            body[key] = (body[key] * 20_000)[:20_000]
    assert isinstance(book.check(body), list)


@pytest.mark.parametrize("book", BOOKS, ids=_name)
def test_deep_bodies_are_checked(book: Book) -> None:
    """Schemas and other values may be nested to any depth."""
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
    """Free it level by level, as Python's recursive deallocation would overflow."""
    pending = [schema]
    while pending:
        node = pending.pop()
        if isinstance(node, (dict, list)):
            pending += node.values() if isinstance(node, dict) else node
            node.clear()


def test_long_texts_are_checked() -> None:
    """No pattern scans a text more than once."""
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
def test_recordings_with_one_wrong_value_give_a_list(
    corpus: Corpus, book: Book, data: st.DataObject
) -> None:
    """Real requests with a value replaced are checked, without quotes."""
    wires = [one.wire for one in bodies(corpus, book.dialect, "core") if one.kind == "request"]
    wire = dict(data.draw(st.sampled_from(wires)))
    path = data.draw(st.sampled_from(_places(wire)))
    planted = data.draw(st.sampled_from([SECRET, {SECRET: [SECRET]}]) | json_values)
    found = book.check(_put(wire, path, planted))
    assert isinstance(found, list)
    assert SECRET not in _tell(found)
