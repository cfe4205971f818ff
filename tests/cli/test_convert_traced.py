"""Chains of conversions invent nothing: values of the last body come from the first.

A value may come back in another form: joined with its neighbours, as JSON in a text, in base64, in
another case. A value that isn't in the first body must be a word of the target's grammar
(`"role": "user"`, a mode, a required name), or the chain must have reported a loss or repair at
that part of the request.
"""

from __future__ import annotations

import json
import re
from base64 import b64decode, b64encode
from collections.abc import Iterator
from functools import cache
from itertools import product
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dragoman
from dragoman.errors import DragomanError, InvalidInputError
from dragoman.model.requests import Request
from dragoman.providers.documents.reading import Reader
from dragoman.providers.documents.writing import Destination
from tests.corpus import Corpus, CorpusNotFoundError
from tests.wire.recorded import bodies
from tests.wire.test_matrix_random import histories

DIALECTS = dragoman.dialects()
_PER_DIALECT = 25

# --- words that a target's grammar requires, whatever the request

_WORDS = re.compile(
    r"""\.(
      role | type | mode | object | status         # what a thing is
    | (reasoning_)?effort | thinkingLevel          # how to think, by each provider's names
    | summary | display
    | detail | level                               # how closely to look
    | service_?[tT]ier
    | responseMimeType | mimeType | media_type     # of JSON, of text, of a picture by its bytes
    | tool_choice                                  # auto, required, none
    | include\[\] | allowed_callers\[\]
    | language | outcome                           # of code that was run
    | tools\[\]\.name                              # web_search: of a tool that a provider runs
    )$""",
    re.VERBOSE,
)
_NAMED = re.compile(r"\.((format|json_schema)\.name|filename)$")
"""Of a schema and of a file, which must have one."""
_THOUGHTS = re.compile(r"\.(thinkingBudget|think|budget_tokens)$")
_LEFT_TO_THE_MODEL = (-1, 0, "none")
_ID = re.compile(r"(?:call|toolu|fc|msg|rs)_[0-9a-z]{6,}")
_IDS = re.compile(r"\.(id|call_id|tool_call_id|tool_use_id)$")
_SEALED = re.compile(r"\.(thoughtSignature|signature|encrypted_content|data)$")
_EMPTY: tuple[Any, ...] = (None, "", {}, [])

# --- the paths of reports for each part of a body

_AREAS = (
    (r"^\.(messages|contents|input|system|instructions|systemInstruction)\b",
     ("messages", "system", "state", "output")),  # JSON may be asked for in words
    (r"^\.(tools|toolConfig|tool_choice|mcp_servers)\b", ("tools", "tool_choice", "extras")),
    (r"max_(completion_|output_)?tokens|maxOutputTokens|num_predict", ("sampling.max_tokens",)),
    (r"think|reasoning|effort", ("thinking",)),
    (r"format|response(Json)?Schema|output_config|responseMimeType", ("output", "tool_choice")),
    (r"^\.(model|stream)$", ("model", "stream")),
)  # fmt: skip


class Step(NamedTuple):
    """The current document, and the paths of the reports so far."""

    text: bytes
    told: tuple[str, ...]


def converted(raw: bytes, source: str, chain: tuple[str, ...]) -> Step:
    """The output of `dragoman convert` from each dialect to the next."""
    told: list[str] = []
    for target in chain:
        written = Destination(target).text_of(Reader(source).read(raw).value)
        raw, source = written.text, target
        told += [loss.path for loss in (*written.losses, *written.notes)]
        told += [repair.path for repair in written.repairs]
    return Step(raw, tuple(told))


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every scalar value with the names on its path."""
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from leaves(inner, f"{path}.{key}")
    elif isinstance(value, list) and value:
        for inner in value:
            yield from leaves(inner, f"{path}[]")
    else:
        yield path, value


class First:
    """The first body of a chain, with lookups of its values."""

    def __init__(self, body: Any) -> None:
        self._text = _bare(json.dumps(body))
        self._said = [each for _, each in leaves(body) if isinstance(each, str) and each.strip()]
        self._numbers = {
            each
            for _, each in leaves(body)
            if isinstance(each, (int, float)) and not isinstance(each, bool)
        }

    def has(self, value: Any) -> bool:
        """Whether a value was in it, in any form."""
        if isinstance(value, bool) or value in _EMPTY:
            return True  # true, false and null: each dialect expresses them in its own way
        if isinstance(value, (int, float)):
            return value in self._numbers or _bare(str(value)) in self._text
        return self._has_text(value) or self._has_json(value) or self._has_coded(value)

    def _has_text(self, text: str) -> bool:
        return all(_bare(json.dumps(line.strip())[1:-1]) in self._text for line in text.split("\n"))

    def _has_json(self, text: str) -> bool:
        try:
            inner = json.loads(text)
        except (ValueError, RecursionError):
            return False
        return not isinstance(inner, str) and all(self.has(each) for _, each in leaves(inner))

    def _has_coded(self, text: str) -> bool:
        data = text.partition(";base64,")[2] or text
        if any(_bare(each.rstrip("=")) in self._text for each in (data, _encoded(text))):
            return True
        try:
            return self._has_text(b64decode(data, validate=True).decode())
        except ValueError:
            return False


def _encoded(text: str) -> str:
    return b64encode(text.encode(errors="replace")).decode()


def _bare(text: str) -> str:
    """A text normalized for comparison.

    Base64 has two alphabets, JSON two spellings of a slash, and enumerations two cases.
    """
    return text.lower().replace("-", "+").replace("_", "/").replace("\\/", "/").replace(" ", "")


def is_grammar(path: str, value: Any) -> bool:
    """Whether a value is a word of the target's grammar for its field, or a required one."""
    if _SEALED.search(path) and isinstance(value, str):
        return _is_envelope(value)
    if _IDS.search(path):
        return isinstance(value, str) and _ID.fullmatch(value) is not None
    if _NAMED.search(path):
        return value in ("answer", "response", "file")
    if "chema" in path or ".parameters" in path:
        return path.endswith(".type") and value in ("object", "string")
    if path.endswith(".model"):
        return False
    return bool(_WORDS.search(path)) or (
        bool(_THOUGHTS.search(path)) and value in _LEFT_TO_THE_MODEL
    )


def _is_envelope(text: str) -> bool:
    """Whether it is the state of another dialect in our envelope."""
    try:
        return b64decode(text.replace("-", "+").replace("_", "/") + "==").startswith(b"dragoman1")
    except ValueError:
        return False


def is_told(path: str, told: tuple[str, ...]) -> bool:
    """Whether a report covers that part of the request."""
    return any(
        re.search(area, path) and any(each.startswith(roots) for each in told)
        for area, roots in _AREAS
    )


def invented(first: Any, last: Step) -> list[tuple[str, Any]]:
    """Values of the last body that are neither from the first nor reported."""
    known = First(first)
    return [
        (path, value)
        for path, value in leaves(json.loads(last.text))
        if not known.has(value)
        and not known.has(str(value).removeprefix("models/"))
        and not is_grammar(path, value)
        and not is_told(path, last.told)
    ]


@cache
def recorded(name: str) -> list[Any]:
    """Recorded requests of one dialect; skips the test if there are none."""
    try:
        corpus = Corpus.open()
    except CorpusNotFoundError as reason:
        pytest.skip(str(reason))
    found = [body.wire for body in bodies(corpus, name) if body.kind == "request"]
    return found[:: max(len(found) // _PER_DIALECT, 1)]


_CHAINS = st.lists(st.sampled_from(DIALECTS), min_size=2, max_size=4).map(tuple)


@pytest.mark.hypothesis
@given(st.integers(0, 99), st.sampled_from(DIALECTS), _CHAINS)
def test_chains_of_recorded_requests_invent_nothing(
    number: int, source: str, chain: tuple[str, ...]
) -> None:
    """Chains of two to four dialects, for recorded requests of every source."""
    first = recorded(source)[number % len(recorded(source))]
    try:
        last = converted(json.dumps(first).encode(), source, chain)
    except DragomanError:
        return  # refused with an error: nothing was written
    assert invented(first, last) == []


@pytest.mark.hypothesis
@given(histories(), st.sampled_from(DIALECTS), _CHAINS)
def test_chains_of_generated_requests_invent_nothing(
    request_made: Request, source: str, chain: tuple[str, ...]
) -> None:
    """The first body is a generated request, encoded in the first dialect."""
    body = dragoman.dialect(source).encode_request(request_made).body
    last = converted(json.dumps(body).encode(), source, chain)
    assert invented(json.loads(json.dumps(body)), last) == []


@pytest.mark.parametrize("source", DIALECTS)
def test_every_recorded_request_to_every_dialect(source: str) -> None:
    """One step, so that each run covers each kind of request."""
    found: list[tuple[str, str, Any]] = []
    for first, target in product(recorded(source), DIALECTS):
        try:
            last = converted(json.dumps(first).encode(), source, (target,))
        except InvalidInputError as error:
            if "conversation" not in str(error):
                raise
        else:  # otherwise, nothing of it can be sent
            found += [(target, path, value) for path, value in invented(first, last)]
    assert found == []


def test_invented_values_are_found() -> None:
    """The property detects a word, a number and a tool that the first body doesn't have."""
    first = {"model": "m", "messages": [{"role": "user", "content": "Where is it?"}]}
    body = {"model": "m", "max_tokens": 77, "messages": [{"role": "user", "content": "Where to?"}],
            "tools": [{"name": "f", "description": "Does it."}]}  # fmt: skip
    found = invented(first, Step(json.dumps(body).encode(), ()))
    assert [path for path, _ in found] == [
        ".max_tokens", ".messages[].content", ".tools[].description",
    ]  # fmt: skip
    assert (
        invented(first, Step(json.dumps(body).encode(), ("tools[0]", "messages[0]"))) == found[:1]
    )
