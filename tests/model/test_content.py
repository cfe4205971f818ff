"""Content parts as dicts: read in every shape, written in one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import assume, given

from dragoman.errors import InvalidInputError
from dragoman.model.content import part_from, part_to_dict, parts_from
from dragoman.model.media import Audio, File, Image, Media, Video
from dragoman.model.parts import Citation, Opaque, Part, Refusal, Text, Thinking
from dragoman.model.tools import ToolCall, ToolResult
from tests.model import strategies as some

URL = "https://example.com/cat.png"
WAV = Audio.from_base64("UklGRg==", "audio/wav")
PDF = "data:application/pdf;base64,JVBERi0x"


@pytest.mark.parametrize(("given_part", "part"), [
    ("hi", Text("hi")),
    ({"type": "text", "text": "hi"}, Text("hi")),
    ({"text": "hi"}, Text("hi")),
    ({"type": "input_text", "text": "hi"}, Text("hi")),
    ({"type": "output_text", "text": "hi"}, Text("hi")),
    ({"type": "text"}, Text("")),
    ({"type": "refusal", "refusal": "no"}, Refusal("no")),
    ({"type": "refusal", "text": "no"}, Refusal("no")),
    ({"type": "image_url", "image_url": {"url": URL}}, Image(url=URL)),
    ({"type": "image_url", "image_url": {"url": URL, "detail": "high"}},
     Image(url=URL, detail="high")),
    ({"type": "image_url", "image_url": URL}, Image(url=URL)),
    ({"type": "image_url", "url": URL, "detail": "low"}, Image(url=URL, detail="low")),
    ({"image_url": {"url": URL}}, Image(url=URL)),
    ({"type": "image_url", "image_url": {"file_id": "f"}}, Image(file_id="f")),
    ({"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}},
     Image(data="aGk=", mime="image/png")),
    ({"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}}, WAV),
    ({"type": "input_audio", "data": "UklGRg==", "format": "wav"}, WAV),
    ({"type": "input_audio", "input_audio": {"data": "UklGRg=="}}, WAV),
    ({"type": "file", "file": {"file_data": PDF, "file_name": "a.pdf"}},
     File.from_data_url(PDF, name="a.pdf")),
    ({"type": "file", "file": {"file_data": PDF, "filename": "a.pdf"}},
     File.from_data_url(PDF, name="a.pdf")),
    ({"type": "file", "file_data": PDF, "file_name": "a.pdf"},
     File.from_data_url(PDF, name="a.pdf")),
    ({"type": "file", "file": {"file_id": "f", "file_name": "a.pdf"}},
     File(file_id="f", name="a.pdf")),
    ({"type": "file", "file_id": "f"}, File(file_id="f")),
    ({"type": "file", "file": {"file_url": "https://x/y"}}, File(url="https://x/y")),
])  # fmt: skip
def test_every_shape_of_a_part_is_read(given_part: Any, part: Part) -> None:
    """Nested as OpenAI has it, flat as older code has it, or by its only key."""
    assert part_from(given_part).identical(part)


@pytest.mark.parametrize(("given_part", "part"), [
    ({"type": "image_url", "url": "https://flat", "image_url": {"url": URL}}, Image(url=URL)),
    ({"type": "input_audio", "data": "aGk=", "format": "mp3",
      "input_audio": {"data": "UklGRg==", "format": "wav"}}, WAV),
    ({"type": "file", "file_id": "flat", "file": {"file_id": "f"}}, File(file_id="f")),
    ({"type": "image_url", "url": URL, "image_url": {"url": "", "detail": None}}, Image(url=URL)),
    ({"type": "file", "file": {"file_id": "f", "file_data": "", "file_name": ""}},
     File(file_id="f")),
])  # fmt: skip
def test_nested_wins_and_empty_does_not_count(given_part: Any, part: Part) -> None:
    """If a field is present twice, the nested one counts, unless it is empty."""
    assert part_from(given_part).identical(part)


@given(some.parts)
def test_a_part_is_itself(part: Part) -> None:
    """Parts pass through untouched."""
    assert part_from(part) is part


@given(some.parts)
def test_the_canonical_form_of_a_part_is_read(part: Part) -> None:
    """What a message's canonical dict holds is content too, every field of it."""
    assert part_from(msgspec.to_builtins(part)).identical(part)


def test_a_keyed_dict_is_one_part_and_a_list_is_many() -> None:
    """None is no part, and one is as good as a list of one."""
    text = {"type": "text", "text": "hi"}
    assert parts_from(text) == (Text("hi"),)
    assert parts_from([text, "ho", Text("!")]) == (Text("hi"), Text("ho"), Text("!"))
    assert parts_from(iter(["a", "b"])) == (Text("a"), Text("b"))
    assert parts_from(Text("hi")) == (Text("hi"),)
    assert parts_from(None) == ()
    assert parts_from([]) == ()


@pytest.mark.parametrize("item", [
    {"type": "hologram", "hologram": {}}, {"type": 5}, {}, {"foo": "bar"}, 5, b"hi", None, object(),
    {"type": "text", "text": 5}, {"type": "text", "text": None},
    {"type": "image_url"}, {"type": "image_url", "image_url": {}},
    {"type": "image_url", "image_url": {"url": 5}}, {"type": "image_url", "image_url": 5},
    {"type": "image_url", "image_url": {"url": URL, "detail": 5}},
    {"type": "input_audio"}, {"type": "input_audio", "input_audio": {"data": "?"}},
    {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": 5}},
    {"type": "file", "file": {}}, {"type": "file"}, {"type": "refusal", "refusal": 5},
    {"type": "thinking", "text": 5}, {"type": "tool_call", "id": "c"},
    {"type": "text", "citations": 5},
])  # fmt: skip
def test_other_values_are_rejected(item: Any) -> None:
    """Unknown types, missing payloads and wrong types raise our own error."""
    with pytest.raises(InvalidInputError):
        part_from(item)
    with pytest.raises(InvalidInputError):
        parts_from([item])


@pytest.mark.parametrize("shape", [
    {"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}},
    {"type": "image_url", "image_url": {"url": URL, "fancy": 1}, "cache_control": {"a": [1]}},
    {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav", "rate": 8}},
    {"type": "file", "file": {"file_id": "f"}, "note": "x"},
    {"type": "refusal", "refusal": "no", "why": "because"},
])  # fmt: skip
def test_unknown_fields_of_a_part_survive(shape: dict[str, Any]) -> None:
    """They are kept as extras of no dialect, and are written in the same position."""
    part = part_from(shape)
    assert set(part.extras) == {"canonical"}
    assert part_to_dict(part) == shape


@pytest.mark.parametrize(("part", "shape"), [
    (Text("hi"), {"type": "text", "text": "hi"}),
    (Refusal("no"), {"type": "refusal", "refusal": "no"}),
    (Image(url=URL), {"type": "image_url", "image_url": {"url": URL}}),
    (Image(url=URL, detail="low"),
     {"type": "image_url", "image_url": {"url": URL, "detail": "low"}}),
    (Image(file_id="f"), {"type": "image_url", "image_url": {"file_id": "f"}}),
    (Image(data="aGk=", mime="image/png"),
     {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}),
    (WAV, {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}}),
    (File.from_data_url(PDF, name="a.pdf"),
     {"type": "file", "file": {"file_data": PDF, "file_name": "a.pdf"}}),
    (File(file_id="f"), {"type": "file", "file": {"file_id": "f"}}),
    (File(url="https://x/y"), {"type": "file", "file": {"file_url": "https://x/y"}}),
    (Text("hi", (Citation(kind="url", url=URL),)),
     {"type": "text", "text": "hi", "citations": [{"kind": "url", "url": URL}]}),
])  # fmt: skip
def test_parts_are_written_nested(part: Part, shape: dict[str, Any]) -> None:
    """The shape is OpenAI's, without empty fields, and reads as the same part."""
    assert part_to_dict(part) == shape
    assert part_from(shape) == part


@given(some.media_parts)
def test_media_come_back_from_their_shape(medium: Media) -> None:
    """Where the shape can hold them, the place they are at survives."""
    assume(medium.data != "")  # an empty field counts as absent
    try:
        shape = part_to_dict(medium)
    except InvalidInputError:
        assert isinstance(medium, Video) or (isinstance(medium, Audio) and medium.data is None)
        return
    back = part_from(shape)
    assert isinstance(back, Media)
    assert (back.data, back.url, back.file_id) == (medium.data, medium.url, medium.file_id)


@pytest.mark.parametrize("part", [
    Thinking("hm"), Video(url="x:y"), Audio(url="x:y"), Opaque("x"), ToolCall("c", "f"),
    ToolResult("c"), File(data=""), Image(data=""),
])  # fmt: skip
def test_what_the_shape_cannot_say_is_in_the_canonical_form(part: Part) -> None:
    """Nothing is dropped or rejected, and it reads back as the same part."""
    written = part_to_dict(part.with_field("note", 1))
    assert written["extras"] == {"canonical": {"note": 1}}
    assert part_from(written).identical(part.with_field("note", 1))


def test_a_part_of_ones_own_is_carried() -> None:
    """Seed 003's `new ContentPart('custom', fields)`: made by hand, by name or as a dict."""
    fields = {"widget": "map", "at": [47.5, None], "_hidden": ""}
    part = Opaque.custom("custom", fields)
    assert part_from({"type": "custom", **fields}) == part
    assert part_to_dict(part) == {"type": "custom", **fields}
    assert Opaque.custom("custom", {"type": "x", "a": 1}).payload == {"type": "custom", "a": 1}
    other = Opaque.custom("hologram", {"depth": 3})
    assert part_from(part_to_dict(other)) == other
    assert other.payload == {"type": "hologram", "depth": 3}


@pytest.mark.parametrize("make", [
    lambda: Opaque.custom("", {}),
    lambda: Opaque.custom(5, {}),  # type: ignore[arg-type]
    lambda: Opaque.custom("custom", [("a", 1)]),  # type: ignore[arg-type]
    lambda: Opaque.custom("custom", {"a": {1}}),
    lambda: Opaque.custom("custom", {1: "a"}),  # type: ignore[dict-item]
    lambda: part_from({"type": "custom", "a": b"x"}),
])  # fmt: skip
def test_a_malformed_part_of_ones_own_is_refused(make: Callable[[], Opaque]) -> None:
    """Its fields are JSON, and it has a type."""
    with pytest.raises(InvalidInputError):
        make()
