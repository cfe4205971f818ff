"""Images in responses are images behind every front that supports them."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman import Front, Image, Text, dialect, dialects
from dragoman.model import events
from dragoman.model.usage import FinishReason
from tests.wire.front_types import check_body, request_to
from tests.wire.streamed import read, written

_PNG = "iVBORw0KGgo="
_ANSWERS: dict[str, dict[str, Any]] = {
    "openai-chat": {
        "id": "x", "object": "chat.completion", "created": 1, "model": "m",
        "choices": [{"index": 0, "finish_reason": "stop", "message": {
            "role": "assistant", "content": "Here",
            "images": [{"type": "image_url",
                        "image_url": {"url": f"data:image/png;base64,{_PNG}"}}]}}],
    },
    "gemini": {
        "modelVersion": "m", "responseId": "x",
        "candidates": [{"finishReason": "STOP", "content": {"role": "model", "parts": [
            {"text": "Here"}, {"inlineData": {"mimeType": "image/png", "data": _PNG}}]}}],
    },
    "openai-responses": {
        "id": "x", "object": "response", "created_at": 1, "model": "m", "status": "completed",
        "output": [
            {"type": "message", "id": "m1", "role": "assistant", "status": "completed",
             "content": [{"type": "output_text", "text": "Here", "annotations": []}]},
            {"type": "image_generation_call", "id": "ig_1", "status": "completed",
             "result": _PNG, "output_format": "png"},
        ],
    },
}  # fmt: skip
_WITH_PLACE = ("openai-chat", "openai-responses", "anthropic", "gemini")


def _pictures(response: Any) -> list[tuple[str | None, str | None]]:
    return [(p.data, p.mime) for p in response.message.parts if isinstance(p, Image)]


@pytest.mark.parametrize("target", dialects())
@pytest.mark.parametrize("source", _ANSWERS)
def test_plain_answers(source: str, target: str) -> None:
    """In another client's dialect, the image is the same, or its loss is reported."""
    given = dialect(source).decode_response(_ANSWERS[source])
    assert _pictures(given) == [(_PNG, "image/png")]
    encoded = dialect(target).encode_response(given)
    again = dialect(target).decode_response(encoded.body)
    place = next(i for i, p in enumerate(given.message.parts) if isinstance(p, Image))
    if target in _WITH_PLACE:
        assert _pictures(again) == _pictures(given)
    else:
        assert f"choices[0].message.parts[{place}]" in {loss.path for loss in encoded.losses}
    assert again.text == "Here"


@pytest.mark.parametrize("target", _WITH_PLACE)
def test_streamed_answers(target: str) -> None:
    """In a stream, the image is the same, or its loss is reported."""
    told: list[events.Event] = [
        events.ResponseStart(id="x", model="m"),
        events.PartStart(0, Text("Here")),
        events.PartStop(0),
        events.PartStart(1, Image(data=_PNG, mime="image/png")),
        events.PartStop(1),
        events.ChoiceFinish(FinishReason.STOP, "stop"),
        events.ResponseEnd(),
    ]
    stream, losses = written(target, told)
    again = read(target, stream).response
    assert _pictures(again) == [(_PNG, "image/png")]
    assert again.text == "Here"
    assert not [loss for loss in losses if "parts[1]" in loss.path]


def test_responses_clients_get_an_image_generation_item() -> None:
    """The Responses types have images only as results of image generation calls."""
    front = Front("openai-responses", request_to("openai-responses"))
    given = dialect("gemini").decode_response(_ANSWERS["gemini"])
    body = check_body("openai-responses", front.response(given).to_bytes())
    made = body["output"][-1]
    assert (made["type"], made["status"], made["result"]) == (
        "image_generation_call", "completed", _PNG,
    )  # fmt: skip
    assert made["id"]
