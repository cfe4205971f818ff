"""Thinking on assistant messages: OpenAI's own API shows none, other servers differ.

`reasoning_content` (DeepSeek, Kimi, Z.ai), `reasoning` (Groq, OpenRouter, vLLM: W115),
`reasoning_details` with signatures and sealed data (OpenRouter), `thinking` parts in the content
(Mistral). Words note which it was.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from dragoman.model.parts import Origin, Thinking
from dragoman.wire.envelope import is_sealed
from dragoman.wire.json_values import is_list, is_object
from dragoman.wire.openai_chat.dialect import DETAILS, NAME, SHOWN
from dragoman.wire.overlay import extras_of, overlay_of, with_overlay, with_word, words_of

SEALED_THINKING = "sealed thinking has no place here"
NOT_WRITTEN = "-reasoning"
"""The word for thinking of no words that a host would refuse (W110)."""
TEXT_FIELDS = ("reasoning_content", "reasoning")
_TEXT_WORDS = (*TEXT_FIELDS, NOT_WRITTEN)

_Form = Literal["full", "summary", "redacted"]
DETAIL_TYPES: dict[str, tuple[_Form, str]] = {
    "reasoning.text": ("full", "text"),
    "reasoning.summary": ("summary", "summary"),
    "reasoning.encrypted": ("redacted", "data"),
}
"""By type of detail: the form of the thinking, and the field that holds its content."""
_TYPES = {form: kind for kind, (form, _) in DETAIL_TYPES.items()}


def decode_reasoning(wire: dict[str, Any], origin: Origin | None, used: set[str]) -> list[Thinking]:
    """The thinking in a message's own fields; the fields it takes are added to `used`."""
    field = next((key for key in TEXT_FIELDS if isinstance(wire.get(key), str)), None)
    details = _decode_details(wire.get(DETAILS), origin)
    text = wire[field] if field else None
    # With `reasoning_details`, OpenRouter repeats their text in `reasoning`.
    if details and (text is None or text == "".join(part.text for part in details)):
        used.add(DETAILS)
        if field is not None:
            used.add(field)
            details[0] = with_copy_in(details[0], field)
        return details
    if any(map(is_sealed, details)):  # by us: what the client was shown beside them is the same
        used.update((DETAILS, *([] if field is None else [field])))
        return details
    if field is None:
        return []
    used.add(field)
    thought = Thinking(wire[field], origin=origin, extras=extras_of({}, NAME, text_words(field)))
    other = TEXT_FIELDS[1 - TEXT_FIELDS.index(field)]
    if wire.get(other) == text:  # some servers write both
        used.add(other)
        thought = with_copy_in(thought, other)
    return [thought]


def text_words(field: str) -> tuple[str, ...]:
    """The words of thinking that stands in this field."""
    return () if field == "reasoning_content" else (field,)


def encode_reasoning(parts: list[Thinking], body: dict[str, Any]) -> None:
    """Write thinking into a message's own fields."""
    details: list[Thinking] = []
    texts: dict[str, list[str]] = {}
    for part in parts:
        words = words_of(part.extras, NAME)
        # A field holds one text: without a word, what is one of many is a detail.
        is_one_of_many = len(parts) > 1 and not any(word in words for word in _TEXT_WORDS)
        if DETAILS in words or is_sealed_thinking(part) or is_one_of_many:
            details.append(part)
            continue
        fields = [field for field in TEXT_FIELDS if f"={field}" in words]
        if NOT_WRITTEN not in words:
            fields.append("reasoning" if "reasoning" in words else "reasoning_content")
        for field in fields:
            texts.setdefault(field, []).append(part.text)
    body.update({field: "\n".join(pieces) for field, pieces in texts.items()})
    if details:
        body[DETAILS] = [_encode_detail(piece) for part in details for piece in _pieces(part)]
        if shown := [
            part.text for part in details if part.text and SHOWN in words_of(part.extras, NAME)
        ]:
            body[TEXT_FIELDS[0]] = "\n".join(shown)
        for field in TEXT_FIELDS:
            if f"={field}" in words_of(details[0].extras, NAME):
                body[field] = "".join(part.text for part in details)


def is_sealed_thinking(part: Thinking) -> bool:
    """Whether there is something to it that only a detail has a place for."""
    return part.data is not None or part.signature is not None


def with_copy_in(part: Thinking, field: str) -> Thinking:
    """A detail whose text stands in a field of the message as well."""
    return part.replace(extras=with_word(part.extras, NAME, f"={field}"))


def _decode_details(details: Any, origin: Origin | None) -> list[Thinking]:
    """A part for each detail; none where one of them is malformed, and all stay in the extras."""
    if not is_list(details):
        return []
    parts = [decode_detail(detail, origin) for detail in details]
    return [part for part in parts if part is not None] if all(parts) else []


def decode_detail(wire: Any, origin: Origin | None) -> Thinking | None:
    """One of `reasoning_details`; None where it is malformed."""
    kind = wire.get("type") if is_object(wire) else None
    if not is_object(wire) or not isinstance(kind, str) or kind not in DETAIL_TYPES:
        return None
    form, key = DETAIL_TYPES[kind]
    content, signature, item_id = wire.get(key), wire.get("signature"), wire.get("id")
    if not isinstance(content, str):
        return None
    known = {"type", key}
    known.update(name for name in ("signature", "id") if isinstance(wire.get(name), str))
    return Thinking(
        "" if form == "redacted" else content,
        content if form == "redacted" else None,
        form,
        signature=signature if isinstance(signature, str) else None,
        item_id=item_id if isinstance(item_id, str) else None,
        origin=origin,
        extras=overlay_of(wire, known, NAME, words=(DETAILS,)),
    )


def _pieces(part: Thinking) -> Iterator[Thinking]:
    """What is a detail each: a detail is readable or sealed, never both."""
    if part.data is None or not part.text:
        yield part
    else:
        form = "full" if part.form == "redacted" else part.form
        yield part.replace(data=None, form=form)
        yield Thinking("", part.data, "redacted", item_id=part.item_id)


def _encode_detail(part: Thinking) -> dict[str, Any]:
    form: _Form = "full" if part.form == "redacted" else part.form
    if part.data is not None:
        form = "redacted"
    kind = _TYPES[form]
    body = {"type": kind, DETAIL_TYPES[kind][1]: part.data if form == "redacted" else part.text}
    if part.signature is not None:
        body["signature"] = part.signature
    if part.item_id is not None:
        body["id"] = part.item_id
    return with_overlay(body, part.extras, NAME)


def decode_thinking(wire: dict[str, Any], origin: Origin | None) -> list[Thinking] | None:
    """Mistral's `thinking` part, one for each of its texts; None where it is malformed."""
    pieces = wire.get("thinking")
    if not is_list(pieces) or not pieces:
        return None
    texts: list[str] = []
    for piece in pieces:
        if not is_object(piece) or len(piece) != 2 or piece.get("type") != "text":  # noqa: PLR2004
            return None
        if not isinstance(text := piece.get("text"), str):
            return None
        texts.append(text)
    extras = overlay_of(wire, ("type", "thinking"), NAME, words=("content",))
    more = extras_of({}, NAME, ("content", "more"))
    first = Thinking(texts[0], origin=origin, extras=extras)
    return [first, *(Thinking(text, origin=origin, extras=more) for text in texts[1:])]


def encode_thinking(part: Thinking, content: list[dict[str, Any]]) -> None:
    """Write a `thinking` part into the content, or its text into the one before."""
    piece = {"type": "text", "text": part.text}
    if content and "more" in words_of(part.extras, NAME) and is_list(content[-1].get("thinking")):
        content[-1]["thinking"].append(piece)
    else:
        content.append(with_overlay({"type": "thinking", "thinking": [piece]}, part.extras, NAME))
