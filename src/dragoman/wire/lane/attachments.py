"""Attachments (images, audio, files, texts with cache hints), identified by everything but data.

A dialect's reader knows where the data is. The rest of the part, with a sample in place of the
data, is its form. The skeleton of a conversation has all forms that occur, each with two samples,
and the general path shows how they are translated: any other data is translated the same way. So
writers don't handle media. The translation does depend on the media type, which the first bytes
reveal: each type has its own samples. `attachment_templates` learns how forms are written.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Mapping
from functools import cache
from string import ascii_letters, digits
from typing import Any

from msgspec import Raw, Struct

from dragoman.model.media import opening_of, sniff_base64
from dragoman.wire.lane.plain import (
    ATTACHED,
    FIRST_FORM,
    Attachment,
    Form,
    Mark,
    Marks,
    NotPlain,
    Result,
    Text,
    Turn,
    Turns,
    encode,
)

_MAX_FORMS = 8
_MAX_FORM_BYTES = 1024
_MAX_DATA = 4 * 1024 * 1024
"""Below the limit of any known host."""
_BASE64 = (ascii_letters + digits + "+/").encode()
_SNIFF_BYTES = 33
"""Number of bytes that determine a media type; 44 characters in base64."""
_LINKS = ("https://example.com/dragoman", "http://example.org/other?sample=1")
_WORDS = ("A sample of a text.", "Other words, as long as they like.")
Template = tuple[bytes, bytes] | str | None
"""The bytes before and after the data, or a text in its place, or nothing at all."""
Templates = Mapping[Form, Template]
NO_TEMPLATES: Templates = {}


# --- decoding


def inlined(data: str) -> str:
    """The sample for base64 data; raises if the data is not in the usual form."""
    end = data.find("=", -2)
    given = data if end < 0 else data[:end]
    if len(data) % 4 or not given or len(data) > _MAX_DATA:
        raise NotPlain
    if end >= 0 and data[end:].strip("="):
        raise NotPlain
    odd = given.encode().translate(None, _BASE64)
    if odd.strip(b"-_"):
        raise NotPlain
    return _samples(sniff_base64(data), is_url_safe=bool(odd))[0]


def linked(url: str) -> str:
    """The sample for a URL."""
    if not url.startswith(("https://", "http://")):
        raise NotPlain
    return _LINKS[0]


def addressed(url: str) -> tuple[str, str, str]:
    """Split a URL: what precedes the data, the sample for the data, and the data."""
    if url.startswith("data:"):
        before, found, data = url.partition(";base64,")
        if not found or "," in before:
            raise NotPlain
        return before + found, inlined(data), data
    return "", linked(url), url


def attachment(part: Struct, sample: str, data: str) -> Attachment:
    """An attachment made of a part that has the sample in place of the data."""
    spelled, sampled = encode(part), sample.encode()
    if len(spelled) > _MAX_FORM_BYTES or spelled.count(sampled) != 1:
        raise NotPlain
    return Attachment(Form(spelled, sampled), data)


def worded(part: Any) -> Attachment:
    """A text with further fields; the text itself is the data."""
    words, part.text = part.text, _WORDS[0]
    if not words or words.isspace():
        raise NotPlain
    return attachment(part, _WORDS[0], words)


@cache
def _samples(mime: str | None, *, is_url_safe: bool = False) -> tuple[str, str]:
    """Two samples that are recognised as a media type, or as none."""
    opening = b64encode((opening_of(mime) or b"Text").ljust(_SNIFF_BYTES, b" ")).decode()
    ends = ("U2Ft-_xl", "T3Ro_-Ih") if is_url_safe else ("U2FtcGxl", "T3RoZXIh")
    return opening + ends[0], opening + ends[1]


# --- attachments in a conversation


def forms_in(turns: Turns, marks: Marks) -> tuple[tuple[Form, ...], Marks]:
    """The forms that occur, sorted; and the marks, with those of attachments naming their form."""
    found = [part.form for part in attachments_in(turns)]
    forms = tuple(sorted(set(found)))
    kinds = {form: FIRST_FORM << number for number, form in enumerate(forms)}
    if len(forms) > _MAX_FORMS:
        raise NotPlain
    each = iter(found)
    told: list[Mark] = []
    for kind, message, part in marks:
        told.append((kinds[next(each)] if kind == ATTACHED else kind, message, part))
    if next(each, None) is not None:
        raise NotPlain  # an attachment where the reader has marked none
    return forms, told


def attachments_in(turns: Turns) -> Iterator[Attachment]:
    """All attachments, in order."""
    for turn in turns:
        for part in turn.content if type(turn.content) is list else ():
            if type(part) is Attachment:
                yield part


def sampled(form: Form, number: int) -> Attachment:
    """A sample attachment for a skeleton."""
    sample = form.sample.decode()
    pair = _WORDS if sample in _WORDS else _LINKS
    if sample not in pair:
        pair = sample, sample[:-8] + _samples(None, is_url_safe="-" in sample)[1][-8:]
    return Attachment(form, pair[number])


# --- encoding


def as_given(forms: tuple[Form, ...]) -> Templates:
    """Templates for writing attachments in the dialect they came in."""
    return {form: form.spelled.split(form.sample) for form in forms}  # type: ignore[misc]  # two


def filled(turns: Turns, templates: Templates) -> Turns:
    """Turns with attachments replaced by their encoded form."""
    return [_filled(turn, templates) if has_attachments(turn) else turn for turn in turns]


def _filled(turn: Turn, templates: Templates) -> Any:
    content: list[Any] = []
    for part in turn.content or ():
        template = templates[part.form] if type(part) is Attachment else None
        if type(part) is not Attachment:
            content.append(part)
        elif isinstance(template, str):
            content.append(Text(template))
        elif template is not None:
            before, after = template
            if len(turn.content or ()) == 1 and part.form.sample == _WORDS[0].encode():
                raise NotPlain  # a single text, which may be encoded differently
            content.append(Raw(b"".join((before, encode(part.data)[1:-1], after))))
    if not content:
        raise NotPlain
    if len(content) == 1 and type(content[0]) is Text:
        return with_content(turn, content[0].text)
    return with_content(turn, content)


def has_attachments(turn: Turn) -> bool:
    """Whether a turn has attachments."""
    content = turn.content
    return type(content) is list and any(type(part) is Attachment for part in content)


def with_content(turn: Any, content: str | list[Any]) -> Any:
    """A copy of the turn with this content."""
    if isinstance(turn, Result):
        return type(turn)(turn.tool_call_id, content)
    return type(turn)(content)
