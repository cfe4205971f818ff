"""JSON text of a compiled schema is edited back to the original schema while it streams."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.wire.schemas import OPENAI_STRICT, projected
from dragoman.wire.schemas.projection import Undos
from tests.wire.schemas.instances import instances
from tests.wire.schemas.strategies import roots


def _edited(undo: Undos, text: str, *sizes: int, **options: bool) -> list[str]:
    """What comes out for each piece, and at the end."""
    editor, at, made = undo.of_text(**options), 0, []
    for size in (*sizes, len(text)):
        made.append(editor.feed(text[at : at + size]))
        at += size
    return [*made, editor.close()]


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def _object(*required: str, **members: Any) -> dict[str, Any]:
    return {"type": "object", "properties": members, "required": list(required),
            "additionalProperties": False}  # fmt: skip


_TEXT, _NUMBER = {"type": "string"}, {"type": "integer"}


@pytest.mark.parametrize("indent", [None, 1])
@given(schema=roots(), seed=st.integers(0, 1000), sizes=st.lists(st.integers(1, 9), max_size=60))
def test_the_text_is_that_of_the_value(
    indent: int | None, schema: dict[str, Any], seed: int, sizes: list[int]
) -> None:
    """In any pieces, and however the model formats it."""
    made = projected(schema, OPENAI_STRICT)
    for value in instances(made.schema, seed, 3):
        text = json.dumps(value, indent=indent)
        assert json.loads("".join(_edited(made.undo, text, *sizes))) == made.undo(value)


_SAMPLE = projected(
    _object("a", a=_TEXT, b=_NUMBER, c={"anyOf": [_object("x", x=_TEXT, y=_TEXT), _NUMBER]}),
    OPENAI_STRICT,
).undo
_WRAPPED = projected({"type": "array", "items": _object(b=_NUMBER)}, OPENAI_STRICT).undo
_PIECES = st.sampled_from(
    ['{"a":', '{"value": [', "{", "}", "]", ":", ",", '"b": null', '"b"', "n", "null", "12", "\\",
     '"c": {"x": "1", "y": null}', '"', " ", "-", '{"b":']
)  # fmt: skip


@given(
    st.lists(_PIECES, max_size=12).map("".join),
    st.lists(st.integers(1, 5), max_size=40),
    st.sampled_from([_SAMPLE, _WRAPPED]),
    st.booleans(),
)
def test_any_text_is_the_same_in_any_pieces(
    text: str, sizes: list[int], undo: Undos, takes_objects: bool
) -> None:
    """Text that is no JSON, too, and what was cut off never becomes complete."""
    whole = "".join(_edited(undo, text, takes_objects=takes_objects))
    assert "".join(_edited(undo, text, *sizes, takes_objects=takes_objects)) == whole
    assert _is_json(whole) <= _is_json(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"a": "Hello", "b": null, "c": 1}', '{"a": "Hello", "c": 1}'),
        ('{"b":null,"a":"x","c":null}', '{"a":"x"}'),
        ('{\n  "b": null,\n  "a": "x"\n}', '{\n  "a": "x"\n}'),
        ('{"a": "x", "c": {"x": "1", "y": null}}', '{"a": "x", "c": {"x": "1"}}'),
        ('{"a": "x", "b": nul', '{"a": "x", "b": nul'),
        ("I would rather not.", "I would rather not."),
    ],
)
def test_the_model_s_own_form_stays(text: str, expected: str) -> None:
    """Only what the original schema doesn't have is cut out."""
    assert "".join(_edited(_SAMPLE, text)) == expected


def test_little_is_held_back() -> None:
    """Strings come as they are read, up to the last piece."""
    text = '{"a": "Hello, world", "b": null}'
    made = _edited(_SAMPLE, text, *[1] * len(text))
    assert "".join(made[:12]) == text[:12]
    assert "".join(made[:20]) == text[:20]


def test_an_alternative_is_chosen_by_what_tells_it_apart() -> None:
    """The tag of a union comes first, so that the rest streams."""
    cat = _object("kind", "name", kind={"const": "cat"}, name=_TEXT, lives=_NUMBER)
    dog = _object("kind", "name", kind={"const": "dog"}, name=_TEXT, tricks=_NUMBER)
    undo = projected({"anyOf": [cat, dog]}, OPENAI_STRICT).undo
    text = '{"value": {"kind": "dog", "name": "Rex", "tricks": null}}'
    made = _edited(undo, text, *[1] * len(text))
    assert "".join(made) == '{"kind": "dog", "name": "Rex"}'
    assert "".join(made[: text.index("ex")]) == '{"kind": "dog", "name": "'


@pytest.mark.parametrize(
    ("text", "expected"),
    [('{"value": 12}', "12"), ('{"value": 12', '{"value": 12'), ('{"value": 12, "x": []}', "12"),
     ('{"other": 12}', '{"other": 12}')],
)  # fmt: skip
def test_a_number_is_taken_out_once_its_wrapper_ends(text: str, expected: str) -> None:
    """Cut off, it could be a part of a longer one."""
    assert "".join(_edited(projected(_NUMBER, OPENAI_STRICT).undo, text)) == expected
