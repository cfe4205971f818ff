"""The tier that a request was served at, as an answer tells it: in its head, or with its usage.

A dialect says where (`Description.answer_tier`). For clients of another dialect it is put where
theirs has it; the extras of the answer stay as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dragoman.model.frozen import EMPTY
from dragoman.model.responses import Response
from dragoman.wire.dialect import description_of
from dragoman.wire.encoded import Encoded

if TYPE_CHECKING:
    from dragoman.wire.description import Description


def put_answer_tier(response: Response, encoded: Encoded, here: Description) -> None:
    """Write the tier of another dialect's answer where this one has it."""
    place = here.answer_tier
    if place is None or (response.extras is EMPTY and response.usage is None):
        return
    names = {*response.extras, *(() if response.usage is None else response.usage.extras)}
    for source in sorted(names - {here.name}):
        described = description_of(source)
        tier = None if described is None else described.answer_tier
        if tier is None:
            continue
        extras, path = tier.held(response)
        fields = extras.get(source)
        told = fields.get(tier.field) if isinstance(fields, Mapping) else None
        ours = next((word for word in tier.words if tier.words[word] == told), "")
        if ours in place.words and _put(encoded.body, place.path.split("."), place.words[ours]):
            lost = f"{path}.{tier.field}"
            encoded.losses = tuple([each for each in encoded.losses if each.path != lost])


def _put(body: Any, steps: list[str], word: str) -> bool:
    for step in steps[:-1]:
        body = body.get(step) if isinstance(body, dict) else None
    if not isinstance(body, dict):
        return False
    body[steps[-1]] = word
    return True
