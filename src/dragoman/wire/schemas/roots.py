"""The root of a schema: an object, and plainly so (W15, W62)."""

from __future__ import annotations

from typing import Any

from dragoman.wire.schemas.keywords import DEFINITIONS, Node, as_list, as_map
from dragoman.wire.schemas.merging import intersected, united
from dragoman.wire.schemas.notes import described
from dragoman.wire.schemas.opening import merge_all, open_references
from dragoman.wire.schemas.profiles import Profile
from dragoman.wire.schemas.run import MAX_LEVELS, Draft, Place, Run
from dragoman.wire.schemas.types import is_null
from dragoman.wire.schemas.unions import is_object_like

WRAPPED = "value"
"""The property that holds the value where the root must be an object and is none."""


def rooted(run: Run) -> tuple[Node, bool]:
    """The root as an object that the target takes for one; whether that was put around it."""
    profile = run.profile
    if not profile.has_object_root:
        return run.root, False
    draft = Draft(run, dict(run.root), Place(is_root=True))
    open_references(draft)
    if "allOf" in draft.node and not _takes(profile, "allOf"):
        merge_all(draft)
    unions: list[str] = [
        key for key in ("anyOf", "oneOf") if key in draft.node and not _takes(profile, key)
    ]
    words = [key for key in ("enum", "const", "not") if key in draft.node]
    refused = [key for key in words if key in profile.refused_at_root]
    is_plain = is_object_like(run, draft.node)
    if not is_plain or (profile.wraps_root and (unions or refused)):
        inner = {key: value for key, value in run.root.items() if key not in DEFINITIONS}
        return {"type": "object", "properties": {WRAPPED: inner}, "required": [WRAPPED]}, True
    for union in unions:
        _merge_forms(draft, union)
    for word in refused:
        draft.drop(word)
    if draft.node.get("type") != "object":
        rest = {key: value for key, value in draft.node.items() if key != "type"}
        draft.node = {"type": "object", **rest}
    return described(draft.node, draft.notes), False


def _takes(profile: Profile, key: str) -> bool:
    """Whether the root may have it; a target without `oneOf` gets it as `anyOf`."""
    known = "anyOf" if key == "oneOf" and not profile.takes(key) else key
    return profile.takes(known) and known not in profile.refused_at_root


def _merge_forms(draft: Draft, key: str) -> None:
    """Alternatives as one object that takes what any of them takes."""
    forms = [each for each in as_list(draft.node.pop(key)) if not is_null(each)]
    words = f"The value takes one of these forms: {draft.run.text_of(forms)}." if forms else ""
    draft.lose("alternatives are merged into one object", words)
    if forms:
        whole = united(draft.run, [_whole(draft.run, form, 1) for form in forms])
        draft.node = intersected(draft.run, draft.node, whole, _told)


def _whole(run: Run, form: Any, level: int) -> Node:
    """A form with its own references, intersections and alternatives resolved."""
    run.spend()
    if level > MAX_LEVELS:  # what it asks for is told in words all the same
        return {}
    draft = Draft(run, dict(as_map(form)), Place(level=level))
    open_references(draft, may_keep=False)
    if "allOf" in draft.node:
        merge_all(draft)
    for key in ("anyOf", "oneOf"):
        forms = as_list(draft.node.pop(key, None))
        if forms:
            whole = united(run, [_whole(run, each, level + 1) for each in forms])
            draft.node = intersected(run, draft.node, whole, _told)
    run.inside.subtract(draft.entered)
    return draft.node


def _told(_keyword: str, _value: Any) -> None:
    """Nothing more to note: the forms are told whole, and the loss is noted."""
