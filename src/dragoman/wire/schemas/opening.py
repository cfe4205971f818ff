"""What stands elsewhere put where it is meant: definitions for references, `allOf` as one."""

from __future__ import annotations

from typing import Any

from dragoman.wire.schemas.keywords import DEFINITIONS, Node, as_list, as_map
from dragoman.wire.schemas.merging import intersected
from dragoman.wire.schemas.notes import described, note
from dragoman.wire.schemas.references import Pointer
from dragoman.wire.schemas.run import Draft
from dragoman.wire.schemas.types import anything

_ABOUT = frozenset({"title", "description", "default", "examples"})


def open_references(draft: Draft, *, may_keep: bool = True) -> None:
    """Put definitions in the place of references that can't stay."""
    run = draft.run
    while "$ref" in draft.node:
        found = run.references.find(draft.node["$ref"])
        rest = {key: value for key, value in draft.node.items() if key != "$ref"}
        if found is None:
            draft.lose("a reference that leads nowhere in this schema is left out")
            draft.node = rest
            continue
        pointer, target = found
        if may_keep and _keeps(draft, pointer, rest):
            return
        run.spend()
        if run.inside[pointer] >= draft.profile.unrolled:
            draft.node = rest
            draft.node = cut(draft)
            return
        run.inside[pointer] += 1
        draft.entered.append(pointer)
        node = target if isinstance(target, dict) else {} if target is True else {"not": {}}
        _merge(draft, rest, {key: value for key, value in node.items() if key not in DEFINITIONS})


def _keeps(draft: Draft, pointer: Pointer, rest: Node) -> bool:
    """Whether a reference stays one; if need be, as an only alternative."""
    profile = draft.profile
    if not profile.takes("$ref") or draft.place.is_root:
        return False
    is_circular = draft.run.references.is_circular(pointer)
    if is_circular and (profile.cycles == "cut" or _must_open(draft, pointer)):
        return False
    siblings = profile.reference_siblings
    beside = {key for key in rest if key not in DEFINITIONS}
    if siblings is None or beside <= siblings:
        return True
    if is_circular and beside <= _ABOUT:
        draft.node = {**rest, "anyOf": [{"$ref": draft.node["$ref"]}]}
        return True
    return False


def _must_open(draft: Draft, pointer: Pointer) -> bool:
    """Whether a reference that closes a circle stands where it can't be left out."""
    run, place = draft.run, draft.place
    if draft.profile.cycles != "optional" or place.is_optional:
        return False
    return run.inside[pointer] > 0 or run.references.share_circle(place.home, pointer)


def merge_all(draft: Draft) -> None:
    """Make one schema of `allOf` and what stands beside it."""
    pending = as_list(draft.node.pop("allOf"))[::-1]
    while pending:
        draft.run.spend()
        branch = pending.pop()
        if branch is True or branch == {}:
            continue
        part = Draft(draft.run, dict(as_map(branch)), draft.place)
        if not isinstance(branch, dict):
            part.node = {"not": {}}
        open_references(part, may_keep=False)
        draft.entered += part.entered
        draft.notes += part.notes
        pending += as_list(part.node.pop("allOf", []))[::-1]
        _merge(draft, draft.node, part.node)


def _merge(draft: Draft, one: Node, other: Node) -> None:
    def lose(key: str, value: Any) -> None:
        if key == "additionalProperties":
            draft.lose("schemas that close each other out are taken together")
        else:
            draft.lose(f"{key} in two schemas that both hold is told in words", note(key, value))

    draft.node = intersected(draft.run, one, other, lose)


def cut(draft: Draft) -> Node:
    """What stands where the schema goes on for longer than it may."""
    draft.is_cut = True
    draft.lose("further levels are cut off", bends=True)
    said = draft.node.get("description")
    about = {"description": said} if isinstance(said, str) else {}
    return described({**anything(draft.profile), **about}, draft.notes)
