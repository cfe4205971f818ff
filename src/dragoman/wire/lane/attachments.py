"""Pictures, sounds, files, texts with hints: known by all that is said of them but their data.

A dialect's reader knows where the data stands. The rest of the part, with a sample in the place of
the data, is its form. The skeleton of a conversation has all forms that occur, each with two
samples, and the general path shows what becomes of them: the same with every other data. So no
writer knows anything of media. What does depend on the data is its type, which its first bytes
betray: each type has samples of its own. How they are written is learned in `showing`.
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

_MOST_FORMS = 8
_MOST_OF_FORM = 1024
_MOST_DATA = 4 * 1024 * 1024
"""Below what any host is known to refuse."""
_BASE64 = (ascii_letters + digits + "+/").encode()
_SNIFFED = 33
"""So many bytes betray a type at the most; 44 characters."""
_LINKS = ("https://example.com/dragoman", "http://example.org/other?sample=1")
_WORDS = ("A sample of a text.", "Other words, as long as they like.")
Template = tuple[bytes, bytes] | str | None
"""What stands before and behind the data, or words in its place, or nothing at all."""
Templates = Mapping[Form, Template]
NO_TEMPLATES: Templates = {}


# --- reading


def inlined(data: str) -> str:
    """A sample in the place of base64 data; raises where it is not in its usual form."""
    end = data.find("=", -2)
    given = data if end < 0 else data[:end]
    if len(data) % 4 or not given or len(data) > _MOST_DATA:
        raise NotPlain
    if end >= 0 and data[end:].strip("="):
        raise NotPlain
    odd = given.encode().translate(None, _BASE64)
    if odd.strip(b"-_"):
        raise NotPlain
    return _samples(sniff_base64(data), is_url_safe=bool(odd))[0]


def linked(url: str) -> str:
    """A sample in the place of an address."""
    if not url.startswith(("https://", "http://")):
        raise NotPlain
    return _LINKS[0]


def addressed(url: str) -> tuple[str, str, str]:
    """An address: what stands before the data, a sample of that, and the data."""
    if url.startswith("data:"):
        before, found, data = url.partition(";base64,")
        if not found or "," in before:
            raise NotPlain
        return before + found, inlined(data), data
    return "", linked(url), url


def attachment(part: Struct, sample: str, data: str) -> Attachment:
    """A part, in which the sample stands for the data."""
    spelled, sampled = encode(part), sample.encode()
    if len(spelled) > _MOST_OF_FORM or spelled.count(sampled) != 1:
        raise NotPlain
    return Attachment(Form(spelled, sampled), data)


def worded(part: Any) -> Attachment:
    """A text with more to it than its words, which are its data."""
    words, part.text = part.text, _WORDS[0]
    if not words or words.isspace():
        raise NotPlain
    return attachment(part, _WORDS[0], words)


@cache
def _samples(mime: str | None, *, is_url_safe: bool = False) -> tuple[str, str]:
    """Two that are taken for data of a type, or of no type that anybody knows."""
    opening = b64encode((opening_of(mime) or b"Text").ljust(_SNIFFED, b" ")).decode()
    ends = ("U2Ft-_xl", "T3Ro_-Ih") if is_url_safe else ("U2FtcGxl", "T3RoZXIh")
    return opening + ends[0], opening + ends[1]


# --- what there is in a conversation


def forms_in(turns: Turns, marks: Marks) -> tuple[tuple[Form, ...], Marks]:
    """The forms that occur, in order; and the marks, of which those of attachments tell them."""
    found = [part.form for part in attachments_in(turns)]
    forms = tuple(sorted(set(found)))
    kinds = {form: FIRST_FORM << number for number, form in enumerate(forms)}
    if len(forms) > _MOST_FORMS:
        raise NotPlain
    each = iter(found)
    told: list[Mark] = []
    for kind, message, part in marks:
        told.append((kinds[next(each)] if kind == ATTACHED else kind, message, part))
    if next(each, None) is not None:
        raise NotPlain  # some are where nobody has marked them
    return forms, told


def attachments_in(turns: Turns) -> Iterator[Attachment]:
    """All of them, in order."""
    for turn in turns:
        for part in turn.content if type(turn.content) is list else ():
            if type(part) is Attachment:
                yield part


def sampled(form: Form, number: int) -> Attachment:
    """An attachment for a skeleton."""
    sample = form.sample.decode()
    pair = _WORDS if sample in _WORDS else _LINKS
    if sample not in pair:
        pair = sample, sample[:-8] + _samples(None, is_url_safe="-" in sample)[1][-8:]
    return Attachment(form, pair[number])


# --- writing


def as_given(forms: tuple[Form, ...]) -> Templates:
    """How the dialect has them that they came in."""
    return {form: form.spelled.split(form.sample) for form in forms}  # type: ignore[misc]  # two


def filled(turns: Turns, templates: Templates) -> Turns:
    """Turns in which attachments are as they are written."""
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
                raise NotPlain  # a text, which may be written otherwise where it is alone
            content.append(Raw(b"".join((before, encode(part.data)[1:-1], after))))
    if not content:
        raise NotPlain
    if len(content) == 1 and type(content[0]) is Text:
        return with_content(turn, content[0].text)
    return with_content(turn, content)


def has_attachments(turn: Turn) -> bool:
    """Whether there are any in it."""
    content = turn.content
    return type(content) is list and any(type(part) is Attachment for part in content)


def with_content(turn: Any, content: str | list[Any]) -> Any:
    """The turn, saying this."""
    if isinstance(turn, Result):
        return type(turn)(turn.tool_call_id, content)
    return type(turn)(content)
