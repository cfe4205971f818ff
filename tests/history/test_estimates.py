"""The figures of token estimates: each weight, overhead and rate.

`test_tokens` shows that they are good; here, that none of them changes unnoticed.
"""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import pytest

from dragoman import (
    Audio,
    File,
    Image,
    Message,
    Opaque,
    Refusal,
    ServerToolCall,
    ServerToolResult,
    Text,
    Thinking,
    ToolCall,
    ToolDefinition,
    ToolResult,
    Video,
)
from dragoman.history.part_tokens import (
    Size,
    image_tokens,
    json_tokens,
    media_tokens,
    size_of_message,
    size_of_parts,
    size_of_tools,
    text_tokens,
)
from dragoman.history.tokens import ALL_REPORTS, Cover, estimate, estimate_tools
from dragoman.model.parts import Origin


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0.0),
        ("abcdefghij", 2.35),
        ("ABCDEFGHIJ", 3.5),
        ("0123456789", 7.0),
        ("a b c d", 4 * 0.235 + 3 * 0.17),
        ("a    b", 2 * 0.235 + 4 * 0.17 - 2 * 0.25),
        ("a\nb\n", 2 * 0.235 + 2 * 0.7),
        (".,;:!", 2.5),
        ("äöü", 2.1),
        ("橋はど", 3.3),
        ("😀😀", 5.0),
        ("a" * 23, 23 * 0.235),
        ("a" * 24, 24 * 0.235),  # a run of lowercase letters may be a word
        ("aB" * 12, 12 * 0.235 + 12 * 0.35 + min(0.35 * 24, 0.65 * 12)),
        ("0" * 24, 24 * 0.7 + 0.35 * 24),
        ("aB" * 11 + "a", 12 * 0.235 + 11 * 0.35),
    ],
)
def test_estimates_of_text(text: str, tokens: float) -> None:
    """By letters, digits, spaces, lines, scripts, and runs that aren't words."""
    assert text_tokens(text) == pytest.approx(tokens)


def test_estimates_of_empty_values() -> None:
    """Values that aren't text, and empty JSON values, count as nothing."""
    nothing: list[Any] = [None, 7, b"abc"]
    assert [text_tokens(each) for each in nothing] == [0.0] * 3
    empty: list[Any] = [None, {}, "", 0]
    assert [json_tokens(each) for each in empty] == [0.0] * 4
    assert json_tokens({"a": object()}) == 0.0
    assert json_tokens({"a": [1, 2]}) == pytest.approx(0.235 + 2 * 0.7 + 8 * 0.5)


def _words(count: int) -> str:
    return "a" * count


@pytest.mark.parametrize(
    ("part", "text", "frame"),
    [
        (Text(_words(100)), 23.5, 0),
        (Refusal(_words(100)), 23.5, 0),
        (Thinking(_words(100)), 23.5, 0),
        (Thinking(_words(10), signature="s" * 100), 10.0, 0),
        (Thinking("", data="s" * 50, signature="s" * 50), 10.0, 0),
        (ToolCall("c1", "aaaa", {}), 4 * 0.235, 10),
        (ToolResult("c1", _words(100)), 23.5, 7),
        (ToolResult("c1", (Text(_words(100)), Text(_words(100)))), 47.0, 7),
        (ServerToolCall(name="aaaa", input={"a": "b"}), 4 * 0.235 + 2 * 0.235 + 3.5, 10),
        (ServerToolResult("aaaa", content={"a": "b" * 400}), 0.235 * 401 + 3.5 + 0.65 * 7, 7),
        (Opaque("x", {"a": "B" * 400}), 408 / 2.6, 0),
    ],
)
def test_estimates_of_parts(part: Any, text: float, frame: float) -> None:
    """Their content, and the overhead around it."""
    size = size_of_parts([part])
    assert size.text == pytest.approx(text)
    assert (size.frame, size.media) == (frame, 0)


def test_estimates_of_messages_and_tools() -> None:
    """Each has an overhead; tools also have one for all of them."""
    assert size_of_message(Message.user("a" * 100)) == Size(23.5, 5, 0)
    assert size_of_message(Message.user("a" * 100, name="aaaa")).text == pytest.approx(24.44)
    assert estimate(Message.user("a" * 100)) == 29
    assert estimate_tools([]) == 0
    tool = ToolDefinition("aaaa", "b" * 100, {"type": "object"})
    one, two = size_of_tools([tool]).text, size_of_tools([tool, tool]).text
    assert two - one == pytest.approx(one - 150)
    assert one - 150 > 12 + 0.235 * 104
    assert Size(1.2, 2.3, 4).total == 8
    assert Size(1, 2, 3) + Size(1, 1, 1) == Size(2, 3, 4)
    assert Size(1, 2, 3) - Size(1, 1, 1) == Size(0, 1, 2)
    assert Size(1, 2, 3).written == 3


@pytest.mark.parametrize(
    ("width", "height", "tokens"),
    [
        (1, 1, 258),
        (512, 512, 350),
        (513, 512, 425),
        (1000, 1000, 1334),
        (1568, 1568, 1600),
        (3000, 1500, 1600),
        (10_000, 100, 765),
        (2048, 768, 1445),
    ],
)
def test_estimates_of_images(width: int, height: int, tokens: int) -> None:
    """The highest of the usual counts, each in its range."""
    assert image_tokens(width, height) == image_tokens(height, width) == tokens


def _sound(rate: int, size: int) -> str:
    head = b"RIFF\0\0\0\0WAVEfmt " + bytes(12) + rate.to_bytes(4, "little")
    return b64encode(head.ljust(size, b"\0")).decode()


@pytest.mark.parametrize(
    ("media", "tokens"),
    [
        (Image.from_url("https://example.org/a.png"), 500),
        (Image.from_url("https://example.org/a.png").replace(detail="low"), 85),
        (Audio.from_url("https://example.org/a.mp3", mime="audio/mpeg"), 200),
        (Video.from_url("https://example.org/a.mp4", mime="video/mp4"), 300),
        (File.from_url("https://example.org/a.pdf", mime="application/pdf"), 1000),
        (Audio(mime="audio/mpeg", data=b64encode(bytes(24_000)).decode()), 96),
        (Audio(mime="audio/pcm", data=b64encode(bytes(96_000)).decode()), 96),
        (Audio(mime="audio/wav", data=_sound(16_000, 48_000)), 96),
        (Audio(mime="audio/wav", data=_sound(1, 24_000)), 96),
        (Video(mime="video/mp4", data=b64encode(bytes(375_000)).decode()), 900),
        (Video(mime="video/mp4", data=b64encode(bytes(3)).decode()), 300),
        (File(mime="text/plain", data=b64encode(bytes(3000)).decode()), 1000),
        (File(mime="application/zip", data=b64encode(bytes(12_000)).decode()), 2000),
        (File(mime="application/zip", data=b64encode(bytes(30)).decode()), 1000),
        (File(mime="application/pdf", data=b64encode(b"%PDF" + bytes(29)).decode()), 1500),
        (File(mime="application/pdf", data=b64encode(bytes(250_002)).decode()), 4500),
    ],
)
def test_estimates_of_media(media: Any, tokens: int) -> None:
    """By length and pages; media by reference count as one of ordinary size."""
    assert media_tokens(media) == tokens
    assert size_of_parts([media]) == Size(0.0, 0.0, tokens)


@pytest.mark.parametrize(
    ("cover", "tokens", "is_mixed", "taken"),
    [
        (ALL_REPORTS, 1, True, True),
        (ALL_REPORTS, 100_000, True, True),
        (Cover(), 1, False, True),
        (Cover(), 1, True, False),
        (Cover(), 499, True, False),
        (Cover(), 500, True, True),
        (Cover(), 100_000, True, True),  # there is no longer window that it could be about
        (Cover(is_cut=True), 100_000, False, True),  # what is sent besides the messages
        (Cover(is_cut=True), 1000, True, True),
        (Cover(is_cut=True), 2001, True, False),
        (Cover(is_cut=True, model="another"), 2001, False, False),
        (Cover(is_cut=True, model="large"), 2001, False, True),
        (Cover(is_cut=True), 1, True, False),
        (Cover(is_cut=True, ratio=100.0), 100_000, True, True),
    ],
)
def test_a_report_only_counts_for_a_window_that_it_can_belong_to(
    cover: Cover, tokens: int, *, is_mixed: bool, taken: bool
) -> None:
    """A far larger report is not about a cut window, and a far smaller one about no window."""
    answer = Message.assistant("Yes.", origin=Origin(dialect="anthropic", model="large"))
    assert cover.takes(answer, tokens, Size(900.0, 100.0), is_mixed=is_mixed) is taken


def test_a_report_far_below_the_estimate_of_media_counts() -> None:
    """The estimates of media are too rough to call it the report of a shorter window."""
    answer = Message.assistant("A cat.")
    assert Cover().takes(answer, 500, Size(900.0, 100.0, 5000), is_mixed=True)
    assert not Cover().takes(answer, 499, Size(900.0, 100.0, 5000), is_mixed=True)
