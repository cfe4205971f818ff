"""Learns how a target's dialect encodes attachments, from the general path's output for samples.

If the data is sent, the bytes before and after it are a template. If it is not, a text may be in
its place, separate or joined with other texts; or nothing at all.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import count
from typing import Any

from msgspec import Raw

from dragoman.wire.lane.attachments import (
    Template,
    Templates,
    attachments_in,
    filled,
    has_attachments,
    with_content,
)
from dragoman.wire.lane.plain import (
    Attachment,
    Form,
    Lane,
    Names,
    NotPlain,
    Text,
    Turns,
    encode,
    loads,
)

_NUMBER = "\x00{}\x00"
"""Nothing else in a skeleton matches this."""
_NUMBERED = re.compile("\x00(\\d+)\x00")


def learned(turns: Turns, names: Names, lane: Lane, shown: Any) -> Templates:
    """Learn how attachments are written, given the general path's translation of the turns."""
    parts = list(attachments_in(turns))
    templates: dict[Form, Template] = {}
    for number, found in _found(_numbered(turns, _as_raw), names, lane, shown).items():
        part = parts[number]
        pieces = encode(found).split(encode(part.data)[1:-1])
        if found is None or len(pieces) == 2:  # noqa: PLR2004 - before and after the data
            _add(templates, part.form, None if found is None else (pieces[0], pieces[1]))
    if all(part.form in templates for part in parts):
        return templates
    words: dict[Form, Template] = {}

    def as_text(part: Attachment, number: str) -> Any:
        return part if part.form in templates else Text(number)

    told = filled(_numbered(turns, as_text), templates)
    for number, found in _found(told, names, lane, shown).items():
        if not isinstance(found, str):
            raise NotPlain
        _add(words, parts[number].form, found)
    return templates | words


def _add(templates: dict[Form, Template], form: Form, template: Template) -> None:
    if templates.setdefault(form, template) != template:
        raise NotPlain  # something in it depends on the data, or on the position


def _as_raw(_part: Attachment, number: str) -> Any:
    return Raw(encode(number))


def _numbered(turns: Turns, as_part: Callable[[Attachment, str], Any]) -> Turns:
    """Turns with a numbered placeholder for each attachment."""
    numbers = count()

    def numbered(part: Any) -> Any:
        is_attached = type(part) is Attachment
        return as_part(part, _NUMBER.format(next(numbers))) if is_attached else part

    return [
        with_content(turn, [numbered(part) for part in turn.content or ()])
        if has_attachments(turn)
        else turn
        for turn in turns
    ]


def _found(turns: Turns, names: Names, lane: Lane, shown: Any) -> dict[int, Any]:
    """What is in place of the placeholders; None where something was left out."""
    probe = loads(encode(lane.write(turns, names)))
    if not isinstance(shown, list) or len(shown) < len(probe):
        raise NotPlain
    found: dict[int, Any] = {}
    _compare(probe, shown[-len(probe) :], found)
    return found


def _compare(probe: Any, shown: Any, found: dict[int, Any]) -> None:
    if isinstance(probe, str):
        _compare_texts(probe, shown, found)
    elif isinstance(probe, dict) and isinstance(shown, dict):
        for key in probe.keys() & shown.keys():
            _compare(probe[key], shown[key], found)
    elif isinstance(probe, list) and isinstance(shown, list):
        _compare_lists(probe, shown, found)


def _compare_texts(probe: str, shown: Any, found: dict[int, Any]) -> None:
    texts, numbers = _NUMBERED.split(probe)[::2], _NUMBERED.findall(probe)
    if texts == ["", ""]:
        found[int(numbers[0])] = shown
    elif numbers and isinstance(shown, str):
        match = re.fullmatch("(.*?)".join(map(re.escape, texts)), shown, re.DOTALL)
        if match is not None:
            found.update(zip(map(int, numbers), match.groups(), strict=True))


def _compare_lists(probe: list[Any], shown: list[Any], found: dict[int, Any]) -> None:
    """If lengths differ, some placeholders were left out: the others are located by the rest."""
    others = [part for part in probe if not _is_number(part)]
    if len(probe) == len(shown) or not others:
        for some, other in zip(probe, shown, strict=True):
            _compare(some, other, found)
        return
    coming, following = iter([*shown, None]), iter([*others, None])
    here, fixed = next(coming), next(following)
    for part in probe:
        if _is_number(part) and here == fixed:
            found[int(part.strip("\x00"))] = None
            continue
        _compare(part, here, found)
        here = next(coming)
        if not _is_number(part):
            fixed = next(following)


def _is_number(part: Any) -> bool:
    return isinstance(part, str) and _NUMBERED.fullmatch(part) is not None
