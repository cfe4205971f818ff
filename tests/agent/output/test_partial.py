"""Reading incomplete JSON while it streams in."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from dragoman.agent.output.partial import PartialJson, partial_json
from dragoman.agent.output.previews import Preview
from dragoman.model.frozen import MAX_DEPTH

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters())
)
JSON = st.recursive(
    SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20
)
TEXTS = st.builds(
    lambda value, ascii_only, indent: json.dumps(value, ensure_ascii=ascii_only, indent=indent),
    JSON,
    st.booleans(),
    st.none() | st.just(1),
)


def is_prefix(part: Any, whole: Any) -> bool:
    """Whether a value may be the received part of another."""
    if isinstance(part, str) and isinstance(whole, str):
        return whole.startswith(part)
    if isinstance(part, dict) and isinstance(whole, dict):
        return list(part) == list(whole)[: len(part)] and _are(part.values(), whole.values())
    if isinstance(part, list) and isinstance(whole, list):
        return len(part) <= len(whole) and _are(part, whole)
    return type(part) is type(whole) and part == whole


def _are(parts: Any, wholes: Any) -> bool:
    pairs = list(zip(parts, wholes, strict=False))
    is_done = all(one == other for one, other in pairs[:-1])
    return is_done and (not pairs or is_prefix(*pairs[-1]))


@given(TEXTS, st.data())
def test_a_truncated_text_gives_a_prefix(text: str, data: st.DataObject) -> None:
    """Wherever a text is cut, the value shown is a prefix of the whole."""
    cut = data.draw(st.integers(0, len(text)))
    shown = partial_json(text[:cut])
    is_number = (
        text[:1] in "-0123456789"
    )  # alone, a surrogate can't be told from the first half of a pair
    assert shown is UNSET or is_number or is_prefix(shown, json.loads(text))


@given(TEXTS)
def test_a_complete_text_gives_its_value(text: str) -> None:
    """It is read exactly as the standard library reads it."""
    assert repr(partial_json(text)) == repr(json.loads(text))


@given(TEXTS, st.data())
def test_splitting_does_not_change_the_value(text: str, data: st.DataObject) -> None:
    """However a text is split, and whether or not it is read in between, the value is the same."""
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=8)))
    watched, unwatched, kept = PartialJson(), PartialJson(), []
    for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True):
        watched.feed(text[start:end])
        unwatched.feed(text[start:end])
        assert repr(watched.value) == repr(partial_json(text[:end]))
        kept.append((watched.copy(), repr(watched.value)))
    assert repr(unwatched.value) == repr(json.loads(text))
    assert [repr(copy) for copy, _ in kept] == [shown for _, shown in kept]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", UNSET),
        (" \n", UNSET),
        ("tru", UNSET),
        ("-", UNSET),
        ("12", 12),
        ("{", {}),
        ('{"a', {}),
        ('{"a"', {}),
        ('{"a": ', {}),
        ('{"a": 1', {}),
        ('{"a": 1 ', {"a": 1}),
        ('{"a": nul', {}),
        ('{"a": "b', {"a": "b"}),
        ('{"a": "b\\', {"a": "b"}),
        ('{"a": "\\ud83d', {"a": ""}),
        ('{"a": "\\ud83d\\ude0', {"a": ""}),
        ('{"a": "\\ud83d\\ude00', {"a": "😀"}),
        ('{"a": "\\ud83dx', {"a": "\ud83dx"}),
        ('[[1, 2], [3, "x', [[1, 2], [3, "x"]]),
        ('{"a": [1], "b": oops', {"a": [1]}),
        ('{"a": 1, "b": "c\\q rest', {"a": 1, "b": "c"}),
        ("[1, 1e999, 2]", [1]),
        ("[1] and so on", [1]),
        ("[1}", [1]),
        ("Sure!", UNSET),
    ],
)
def test_values_shown_so_far(text: str, value: Any) -> None:
    """Strings are shown as received; values that may still change and invalid JSON are not."""
    assert partial_json(text) == value


def test_hostile_input_is_bounded() -> None:
    """Nesting beyond the limit and huge numbers end the preview."""
    deep = partial_json("[" * 1_000_000)
    for _ in range(MAX_DEPTH - 1):
        (deep,) = deep
    assert deep == []
    assert partial_json("[1, " + "9" * 1_000_000) == [1]


class Counted(PartialJson):
    """Counts the items that its copies hold."""

    copied = 0

    def copy(self) -> Any:
        """Copy and count."""
        Counted.copied += self.size
        return super().copy()


@pytest.mark.parametrize(("start", "piece"), [("[", "1, "), ('["', "x"), ("[", '{"a": []},')])
def test_a_preview_is_linear_in_the_stream(
    start: str, piece: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For a long stream in tiny pieces, the copied amount is proportional to its length."""
    monkeypatch.setattr("dragoman.agent.output.previews.PartialJson", Counted)
    sizes: list[int] = []
    for length in (20_000, 40_000):
        Counted.copied, preview = 0, Preview(is_wrapped=False)
        for delta in [start, *[piece] * length]:
            preview.feed(delta)
        sizes.append(Counted.copied)
    assert sizes[1] < 3 * sizes[0]


def test_a_preview_shows_final_values() -> None:
    """Shown values don't change, nothing is shown twice, and the wrapper is never shown."""
    preview, shown = Preview(is_wrapped=True), list[Any]()
    for delta in ["Here:\n```json\n", '{"resu', 'lt": [', "1", ", ", '"a', "b", '"]', "}", "\n```"]:
        value = preview.feed(delta)
        if value is not UNSET:
            shown.append(value)
    assert shown == [[], [1], [1, "a"], [1, "ab"]]
    assert preview.close() is UNSET


def test_a_preview_ends_with_the_complete_value() -> None:
    """Parts held back for their size come at the end."""
    preview = Preview(is_wrapped=False)
    text = json.dumps({"text": "x" * 50_000})
    shown = [preview.feed(character) for character in text]
    assert sum(value is not UNSET for value in shown) < len(text) / 2
    last = [value for value in [*shown, preview.close()] if value is not UNSET][-1]
    assert last == json.loads(text)
