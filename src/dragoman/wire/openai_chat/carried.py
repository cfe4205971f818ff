"""What Chat's clients carry for other dialects: de-facto fields of proxies and routers.

- thinking with its signatures: LiteLLM's `thinking_blocks`, and OpenRouter's `reasoning_details`,
  whose `format` names the API that made them
- Gemini's thought signatures: in Google's `extra_content`, in LiteLLM's
  `provider_specific_fields`, and at the end of LiteLLM's call ids
- Anthropic's `cache_control` on a message: it is that of its last part
- files by address in `file_id`, and their media type in `format` (LiteLLM)
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from itertools import groupby
from typing import Any, NamedTuple

from msgspec import UNSET

from dragoman.model.frozen import EMPTY
from dragoman.model.media import Media
from dragoman.model.messages import Message
from dragoman.model.parts import Origin, Text, Thinking
from dragoman.model.roles import Role
from dragoman.model.tools import ToolCall, ToolResult
from dragoman.wire.carried import (
    CACHE,
    Carried,
    hint_of,
    with_changed_content,
    with_fields,
    with_hint,
)
from dragoman.wire.envelope import PREFIX
from dragoman.wire.json_values import is_list, is_object
from dragoman.wire.openai_chat.dialect import BLOCKS, DETAILS, NAME, is_own
from dragoman.wire.openai_chat.tables import ADDRESSES
from dragoman.wire.openai_chat.thinking import encode_detail, pieces
from dragoman.wire.overlay import fields_of, has_no_content, words_of

_CLAUDE = Origin(dialect="anthropic")
_GEMINI = Origin(dialect="gemini")
_RESPONSES = "openai-responses"
_SPECIFIC = "provider_specific_fields"
_EXTRA = "extra_content"
_SIGNATURE = "thought_signature"
_SIGNATURES = "thought_signatures"
_IN_ID = "__thought__"
_MEDIA = ("file", "image_url", "video_url", "audio_url", "file_url")

Entry = tuple[Any, int | None]
"""A part, and its place in the message as given; None if it was in a field of the message."""


def _has_nothing(message: Message) -> bool:
    """Whether there is certainly nothing to read, as in most messages."""
    if message.extras is not EMPTY and not has_no_content(message.extras):
        return False
    for part in message.parts:  # no generator: this runs for every message
        kind = type(part)
        if part.extras is not EMPTY or part.signature is not None or isinstance(part, Media):
            return False
        if kind is ToolResult and type(part.content) is not str:  # type: ignore[union-attr]  # a result
            return False
        if kind is ToolCall and _IN_ID in part.id:  # type: ignore[union-attr]  # a call
            return False
    return True


def _read(message: Message) -> Carried | None:
    if _has_nothing(message):
        return None
    fields = dict(fields_of(message.extras, NAME))
    parts: list[Entry] = [
        (with_changed_content(part, _with_address), place)
        for place, part in enumerate(message.parts)
    ]
    if message.role is Role.ASSISTANT:
        parts = _with_blocks(message, parts, fields)
        parts = _with_details(parts, fields)
        parts = [(_with_signature(part, message), place) for part, place in parts]
        _sign_text(parts, fields)
    made = [part for part, _ in parts]
    hint = hint_of(fields.get(CACHE))
    if hint is not None and with_hint(made, hint):
        del fields[CACHE]
    is_same = len(made) == len(message.parts) and all(
        new is old for new, old in zip(made, message.parts, strict=True)
    )
    if is_same:
        return None
    changed = message.replace_unchecked(
        parts=tuple(made), extras=with_fields(message.extras, NAME, fields)
    )
    return Carried(changed, tuple([place for _, place in parts]))


CARRIED = _read


# --- thinking: LiteLLM's `thinking_blocks`


def decode_block(block: Any) -> Thinking | None:
    """Decode one of `thinking_blocks`, which are Anthropic's; None if it is malformed."""
    if not isinstance(block, Mapping):
        return None
    text, signature, data = (block.get(key) for key in ("thinking", "signature", "data"))
    if block.get("type") == "redacted_thinking" and isinstance(data, str):
        return Thinking("", data, "redacted", origin=_CLAUDE)
    if block.get("type") != "thinking" or not isinstance(text, str):
        return None
    signed = signature if isinstance(signature, str) else None
    return Thinking(text, signature=signed, origin=_CLAUDE)


def _with_blocks(message: Message, parts: list[Entry], fields: dict[str, Any]) -> list[Entry]:
    """Put the thinking of `thinking_blocks` before the parts, in place of its unsigned copies."""
    specific = fields.get(_SPECIFIC)
    copied = specific.get(BLOCKS) if is_object(specific) else None
    given = fields.get(BLOCKS)
    found = _decoded_blocks(given) or _decoded_blocks(copied)
    if not found:
        return parts
    fields.pop(BLOCKS, None)
    if is_object(specific) and (copied == given or not given):
        known = {BLOCKS}
        if _is_copy(specific.get("reasoning_content"), found):
            known.add("reasoning_content")
        _keep(fields, _SPECIFIC, _without(specific, known))
    left: list[Entry] = []
    gone: list[int | None] = []
    for part, place in parts:
        is_thought = isinstance(part, Thinking) and is_own(message.origin_of(part))
        if is_thought and (_format(part) == _CLAUDES or _is_copy(part.text, found)):
            gone.append(place)
        else:
            left.append((part, place))
    return [*[(part, gone[0] if gone else None) for part in found], *left]


def _decoded_blocks(blocks: Any) -> list[Thinking]:
    """The thinking in the blocks; none unless all of them are well-formed and one is signed."""
    found = [decode_block(block) for block in blocks] if isinstance(blocks, list) else []
    made = [part for part in found if part is not None]
    is_signed = any(part.signature or part.data for part in made)
    return made if is_signed and len(made) == len(found) else []


def _is_copy(text: Any, thoughts: Iterable[Thinking]) -> bool:
    """Whether a text is that of the thoughts."""
    texts = [part.text for part in thoughts if part.text]
    return bool(texts) and text in ("".join(texts), "\n".join(texts), "\n\n".join(texts))


# --- thinking: OpenRouter's `reasoning_details`


class _Detail(NamedTuple):
    """An entry of `reasoning_details`, and its part's place; None if it was left in the field."""

    wire: Mapping[str, Any]
    place: int | None

    def text(self, key: str) -> str:
        """The text of a field; empty if there is none."""
        value = self.wire.get(key)
        return value if isinstance(value, str) else ""

    @property
    def content(self) -> str:
        """What can be read in it."""
        return self.text("text") or self.text("summary")


def _format(part: Thinking) -> Any:
    return fields_of(part.extras, NAME).get("format")


def _with_details(parts: list[Entry], fields: dict[str, Any]) -> list[Entry]:
    """Put the thinking of details with a known format before the parts, as its API has it."""
    inside = [
        _Detail(encode_detail(piece), place)
        for part, place in parts
        if isinstance(part, Thinking) and DETAILS in words_of(part.extras, NAME)
        for piece in pieces(part)
    ]
    listed = fields.get(DETAILS)
    listed = listed if is_list(listed) else []
    given = inside or [_Detail(each, None) for each in listed if is_object(each)]
    made: list[Entry] = []
    read: list[_Detail] = []
    for name, run in groupby(given, lambda detail: detail.wire.get("format")):
        decode = _FORMATS.get(name) if isinstance(name, str) else None
        details = list(run)
        thoughts = None if decode is None else decode(details, str(name), parts)
        if thoughts is not None:
            made += thoughts
            read += details
    if not read:
        return parts
    if not inside:
        wires = [detail.wire for detail in read]
        _keep(fields, DETAILS, [each for each in listed if each not in wires])
    gone = {detail.place for detail in read}
    copies = [part for part, _ in made]
    rest = [
        (part, place)
        for part, place in parts
        if place not in gone
        and not (not inside and type(part) is Thinking and _is_copy(part.text, copies))
    ]
    return made + rest


def _claude_thoughts(details: list[_Detail], _name: str, _parts: list[Entry]) -> list[Entry] | None:
    """Claude's thinking: the signature of a text may come in a detail of its own."""
    made: list[Entry] = []
    texts: list[_Detail] = []
    for detail in details:
        data, signature = detail.text("data"), detail.text("signature")
        if data:
            made += _unsigned(texts)
            texts = []
            made.append((Thinking("", data, "redacted", origin=_CLAUDE), detail.place))
            continue
        if texts and texts[-1].wire.get("index") != detail.wire.get("index"):
            made += _unsigned(texts)
            texts = []
        texts.append(detail)
        if signature:
            text = "".join(each.content for each in texts)
            made.append((Thinking(text, signature=signature, origin=_CLAUDE), texts[0].place))
            texts = []
    return made + _unsigned(texts)


def _unsigned(details: list[_Detail]) -> list[Entry]:
    """Thinking without a signature, which is reported as such."""
    text = "".join(each.content for each in details)
    return [(Thinking(text, origin=_CLAUDE), details[0].place)] if text else []


def _gemini_thoughts(details: list[_Detail], _name: str, parts: list[Entry]) -> list[Entry] | None:
    """Gemini's thoughts; an encrypted one is the signature of a call, or of the text."""
    made: list[Entry] = []
    for detail in details:
        signature = detail.text("data") or detail.text("signature")
        if detail.content:
            signed = detail.text("signature") or None
            thought = Thinking(detail.content, None, "summary", signature=signed, origin=_GEMINI)
            made.append((thought, detail.place))
        elif signature and not _sign(parts, signature, detail.text("id")):
            return None
    return made


def _sign(parts: list[Entry], signature: str, call_id: str) -> bool:
    """Give a signature to its call, else to the first call, else to the last text."""
    calls = [number for number, (part, _) in enumerate(parts) if isinstance(part, ToolCall)]
    named = [number for number in calls if call_id and parts[number][0].id == call_id]
    texts = [number for number, (part, _) in enumerate(parts) if type(part) is Text]
    for number in named or calls[:1] or texts[-1:]:
        part, place = parts[number]
        if part.signature is None:
            parts[number] = (_signed(part, signature), place)
        return True
    return False


def _responses_thoughts(
    details: list[_Detail], name: str, _parts: list[Entry]
) -> list[Entry] | None:
    """Items of the Responses API: summaries, then the encrypted reasoning.

    Without the latter they can't be sent back: their ids are stored for another account.
    """
    origin = Origin(dialect=_RESPONSES, provider=_PROVIDERS[name])
    made: list[Entry] = []
    texts: list[_Detail] = []
    for detail in details:
        data = detail.text("data")
        if not data:
            texts.append(detail)
            continue
        item_id = detail.text("id") or None
        shown = [(each.content, each.place) for each in texts if each.content]
        form: Any = "full" if texts and texts[0].text("text") else "summary"
        if not shown:
            shown, form = [("", detail.place)], "redacted"
        for number, (text, place) in enumerate(shown):
            sealed = None if number else data
            made.append((Thinking(text, sealed, form, item_id=item_id, origin=origin), place))
        texts = []
    return None if texts else made


_CLAUDES = "anthropic-claude-v1"
_PROVIDERS = {
    "openai-responses-v1": "openai",
    "azure-openai-responses-v1": "azure",
    "xai-responses-v1": "xai",
}
"""Who made the items, by format: another provider can't decrypt them."""
_FORMATS: Mapping[str, Callable[[list[_Detail], str, list[Entry]], list[Entry] | None]] = {
    _CLAUDES: _claude_thoughts,
    "google-gemini-v1": _gemini_thoughts,
    **dict.fromkeys(_PROVIDERS, _responses_thoughts),
}
FORMATS = frozenset(_FORMATS)
"""The formats of details that another dialect has as its own thinking."""


# --- Gemini's thought signatures


def _with_signature(part: Any, message: Message) -> Any:
    """The call with its signature as Gemini's, wherever the client kept it."""
    if not isinstance(part, ToolCall):
        return part
    if part.signature is not None:
        is_raw = is_own(message.origin_of(part)) and not part.signature.startswith(PREFIX)
        return _signed(part, part.signature) if is_raw else part
    fields = dict(fields_of(part.extras, NAME))
    signature = _taken(fields)
    inner = fields.get("function")
    if signature is None and is_object(inner):
        inner = dict(inner)
        signature = _taken(inner)
        _keep(fields, "function", inner)
    if signature is not None:
        part = part.replace_unchecked(extras=with_fields(part.extras, NAME, fields))
    elif _IN_ID in part.id:
        signature = part.id.partition(_IN_ID)[2] or None
    return part if signature is None else _signed(part, signature)


def _taken(fields: dict[str, Any]) -> str | None:
    """Remove the signature from the fields of a call, a function or a message."""
    for path in ((_SIGNATURE,), (_SPECIFIC, _SIGNATURE), *_PATHS):
        *outer, last = path
        holder: Any = fields
        for step in outer:
            holder = holder.get(step) if is_object(holder) else None
        found = holder.get(last) if is_object(holder) else None
        if isinstance(found, str) and found and not found.startswith(PREFIX):
            _remove(fields, path)
            return found
    return None


_PATHS = tuple((_EXTRA, vendor, _SIGNATURE) for vendor in ("google", "vertex"))
"""Google's field, under its two names."""


def _remove(fields: dict[str, Any], path: tuple[str, ...]) -> None:
    """Remove a field, and the objects around it that have no other."""
    first, *rest = path
    if not rest:
        del fields[first]
        return
    inner = dict(fields[first])
    _remove(inner, tuple(rest))
    _keep(fields, first, inner)


def _signed(part: Any, signature: str) -> Any:
    changes: dict[str, Any] = {"signature": signature, "origin": _GEMINI}
    if isinstance(part, ToolCall):
        changes["wire_id"] = UNSET  # of this dialect only
    return part.replace_unchecked(**changes)


def _sign_text(parts: list[Entry], fields: dict[str, Any]) -> None:
    """Give the last text the signature that is in a field of the message."""
    place = next((n for n in reversed(range(len(parts))) if type(parts[n][0]) is Text), None)
    if place is None or parts[place][0].signature is not None:
        return
    signature = _taken(fields)
    specific = fields.get(_SPECIFIC)
    several = specific.get(_SIGNATURES) if is_object(specific) else None
    if signature is None and is_list(several) and len(several) == 1 and type(several[0]) is str:
        signature = several[0]
        _remove(fields, (_SPECIFIC, _SIGNATURES))
    if signature:
        part, before = parts[place]
        parts[place] = (_signed(part, signature), before)


# --- files by address


def _with_address(part: Any) -> Any:
    """Media with the address in `file_id`, and the type in `format`."""
    if not isinstance(part, Media):
        return part
    changes: dict[str, Any] = {}
    # Gemini has addresses for ids of its own.
    if part.file_id is not None and is_own(part.origin) and part.file_id.startswith(ADDRESSES):
        changes = {"url": part.file_id, "file_id": None}
    fields = dict(fields_of(part.extras, NAME))
    for key in _MEDIA:
        inner = fields.get(key)
        if not is_object(inner):
            continue
        kind = inner.get("format")
        if isinstance(kind, str) and "/" in kind and part.mime in (None, kind):
            _keep(fields, key, _without(inner, {"format"}))
            changes |= {"mime": kind, "extras": with_fields(part.extras, NAME, fields)}
    return part.replace_unchecked(**changes) if changes else part


# --- fields that are left


def _without(fields: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if name not in names}


def _keep(fields: dict[str, Any], name: str, left: Any) -> None:
    """Keep what is left of a field, if anything is."""
    if left:
        fields[name] = left
    else:
        fields.pop(name, None)
