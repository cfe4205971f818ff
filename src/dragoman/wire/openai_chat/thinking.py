"""Thinking in assistant messages. OpenAI's own API has none; other servers differ.

`reasoning_content` (DeepSeek, Kimi, Z.ai), `reasoning` (Groq, OpenRouter, vLLM: W115),
`reasoning_details` with signatures and encrypted data (OpenRouter), `thinking` parts in the
content (Mistral). Overlay words record which field it was.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dragoman.model.parts import Origin, Thinking
from dragoman.wire.envelope import PREFIX, is_sealed
from dragoman.wire.json_values import is_list, is_object
from dragoman.wire.openai_chat.dialect import BARE, DETAILS, NAME, SHOWN
from dragoman.wire.overlay import extras_of, overlay_of, with_overlay, with_word, words_of
from dragoman.wire.reading import Reading
from dragoman.wire.rows import SILENT, Row, Shape, Union

SEALED_THINKING = "signed or encrypted thinking is not supported in this field"
NOT_WRITTEN = "-reasoning"
"""The overlay word for empty thinking that a host would refuse (W110)."""
TEXT_FIELDS = ("reasoning_content", "reasoning")
_TEXT_WORDS = (*TEXT_FIELDS, NOT_WRITTEN)


def _detail(kind: str, field: str, form: str, given: str = "text") -> Shape[Thinking]:
    return Shape(
        NAME, kind, Thinking,
        Row(field, given, is_required=True), Row("signature", "signature"), Row("id", "item_id"),
        make=_made_detail, given={"form": repr(form)}, keeps_origin=True,
    )  # fmt: skip


def _made_detail(text: str = "", **fields: Any) -> Thinking:
    return Thinking(text, **fields, extras=_FROM_DETAIL)


_FROM_DETAIL = extras_of({}, NAME, (DETAILS,))
_FORMS = {
    "full": _detail("reasoning.text", "text", "full"),
    "summary": _detail("reasoning.summary", "summary", "summary"),
    "redacted": _detail("reasoning.encrypted", "data", "redacted", "data"),
}
_DETAILS = Union(NAME, *_FORMS.values())
CONTENT_OF = {shape.tag: shape.rows[0].wire for shape in _FORMS.values()}
"""The field with the content of a detail, by its type."""


def decode_reasoning(wire: dict[str, Any], reading: Reading, used: set[str]) -> list[Thinking]:
    """Decode thinking in message fields; adds the decoded fields to `used`."""
    field = next((key for key in TEXT_FIELDS if isinstance(wire.get(key), str)), None)
    details = _decode_details(wire.get(DETAILS), reading)
    text = wire[field] if field else None
    # With `reasoning_details`, OpenRouter repeats their text in `reasoning`.
    if details and (text is None or text == "".join(part.text for part in details)):
        used.add(DETAILS)
        if field is not None:
            used.add(field)
            details[0] = with_copy_in(details[0], field)
        return details
    if any(
        map(is_sealed, details)
    ):  # sealed by us: the text field shown to the client repeats them
        used.update((DETAILS, *([] if field is None else [field])))
        return details
    if field is None:
        return []
    sealed = details if not any(part.text for part in details) else []
    used.update((field, *([DETAILS] if sealed else ())))
    # Beside others its field is noted in any case: one of many would be written as a detail.
    words = (field,) if sealed else text_words(field)
    thought = Thinking(wire[field], origin=reading.origin, extras=extras_of({}, NAME, words))
    other = TEXT_FIELDS[1 - TEXT_FIELDS.index(field)]
    if wire.get(other) == text:  # some servers send both
        used.add(other)
        thought = with_copy_in(thought, other)
    return [thought, *sealed]


def text_words(field: str) -> tuple[str, ...]:
    """The overlay words of thinking in a field."""
    return () if field == "reasoning_content" else (field,)


def encode_reasoning(parts: list[Thinking], body: dict[str, Any]) -> None:
    """Write thinking to message fields."""
    details: list[Thinking] = []
    texts: dict[str, list[str]] = {}
    for part in parts:
        words = words_of(part.extras, NAME)
        # A field holds one text: one of several parts becomes a detail unless it has a field word.
        is_one_of_many = len(parts) > 1 and not any(word in words for word in _TEXT_WORDS)
        if DETAILS in words or is_sealed_thinking(part) or is_one_of_many:
            details.append(part)
            continue
        fields = [field for field in TEXT_FIELDS if f"={field}" in words]
        if NOT_WRITTEN not in words:
            fields.append("reasoning" if "reasoning" in words else "reasoning_content")
        for field in fields:
            texts.setdefault(field, []).append(part.text)
    body.update({field: "\n".join(those) for field, those in texts.items()})
    if details:
        body[DETAILS] = [encode_detail(piece) for part in details for piece in pieces(part)]
        if shown := [
            part.text for part in details if part.text and SHOWN in words_of(part.extras, NAME)
        ]:
            body[TEXT_FIELDS[0]] = "\n".join(shown)
        for field in TEXT_FIELDS:
            if f"={field}" in words_of(details[0].extras, NAME):
                body[field] = "".join(part.text for part in details)


def is_sealed_thinking(part: Thinking) -> bool:
    """Whether thinking has a signature or data, which only a detail can hold."""
    return part.data is not None or part.signature is not None


def with_copy_in(part: Thinking, field: str) -> Thinking:
    """A detail whose text is repeated in a message field."""
    return part.replace(extras=with_word(part.extras, NAME, f"={field}"))


def _decode_details(details: Any, reading: Reading) -> list[Thinking]:
    """Decode `reasoning_details`; empty if any is malformed (then all stay in the extras)."""
    if not is_list(details):
        return []
    parts = [decode_detail(detail, reading) for detail in details]
    return [part for part in parts if part is not None] if all(parts) else []


def decode_detail(wire: Any, reading: Reading) -> Thinking | None:
    """Decode one of `reasoning_details`; None if it is malformed."""
    found = _DETAILS.read(wire, reading)
    return found if type(found) is Thinking else None


def pieces(part: Thinking) -> Iterator[Thinking]:
    """Split a part into details: a detail is readable or encrypted, never both."""
    if part.data is None or not part.text:
        yield part
    else:
        form = "full" if part.form == "redacted" else part.form
        yield part.replace(data=None, form=form)
        yield Thinking("", part.data, "redacted", item_id=part.item_id)


def encode_detail(part: Thinking) -> dict[str, Any]:
    """Encode thinking as one of `reasoning_details`."""
    form = "full" if part.form == "redacted" else part.form
    found: dict[str, Any] = _FORMS[form if part.data is None else "redacted"].write(part, SILENT)
    return found


def decode_thinking(wire: dict[str, Any], origin: Origin | None) -> list[Thinking] | None:
    """Decode Mistral's `thinking` part, one for each of its texts; None if it is malformed.

    An envelope in its `signature` belongs to all of the texts, so the last one holds it.
    """
    pieces, signature = wire.get("thinking"), wire.get("signature")
    seal = signature if isinstance(signature, str) and signature.startswith(PREFIX) else None
    if not is_list(pieces) or not (pieces or seal):
        return None
    texts: list[str] = []
    for piece in pieces:
        if not is_object(piece) or len(piece) != 2 or piece.get("type") != "text":  # noqa: PLR2004
            return None
        if not isinstance(text := piece.get("text"), str):
            return None
        texts.append(text)
    known = ("type", "thinking") if seal is None else ("type", "thinking", "signature")
    words = ("content",) if texts else ("content", BARE)
    extras = overlay_of(wire, known, NAME, words=words)
    more = extras_of({}, NAME, ("content", "more"))
    made = [Thinking(text, origin=origin, extras=more) for text in texts[1:]]
    made.insert(0, Thinking(texts[0] if texts else "", origin=origin, extras=extras))
    if seal is not None:
        made[-1] = made[-1].replace(signature=seal)
    return made


def encode_thinking(part: Thinking, content: list[dict[str, Any]]) -> None:
    """Add a `thinking` part to the content, or its text to the previous one."""
    words = words_of(part.extras, NAME)
    pieces = [] if BARE in words and not part.text else [{"type": "text", "text": part.text}]
    seal = {"signature": part.signature} if is_sealed(part) and part.data is None else {}
    if content and "more" in words and is_list(content[-1].get("thinking")):
        content[-1]["thinking"] += pieces
        content[-1].update(seal)
    else:
        chunk = {"type": "thinking", "thinking": pieces, **seal}
        content.append(with_overlay(chunk, part.extras, NAME))


def is_lost_in_chunk(part: Thinking) -> bool:
    """Whether thinking has state that a `thinking` part can't hold: all but an envelope."""
    return part.data is not None or (part.signature is not None and not is_sealed(part))
