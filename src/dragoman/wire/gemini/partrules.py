"""What the API demands of function calls and responses."""

from __future__ import annotations

from collections.abc import Mapping

from dragoman.wire.gemini.view import View, object_in, objects_in, spelled, value_of
from dragoman.wire.violations import Found, Object

_REFERENCES = frozenset({"$ref", "$defs"})


def w80_arguments_are_an_object(view: View) -> Found:
    """The arguments of a call are an object, or not there."""
    for path, call in view.calls():
        args = call.get("args")
        if args is not None and not isinstance(args, Mapping):
            yield f"{path}.args", "the arguments must be an object"


def w81_calls_and_responses_have_names(view: View) -> Found:
    """Ids are optional, names are not."""
    for path, named in (*view.calls(), *view.responses()):
        if not isinstance(named.get("name"), str) or not named["name"]:
            yield f"{path}.name", "the name of the function is needed"


def w81_ids_are_echoed(view: View) -> Found:
    """The id of a response is that of a call in the turn before it."""
    called: set[str] = set()
    for content in view.contents:
        ids = [object_in(part, "functionCall").get("id") for _, part in content.calls]
        called.update(value for value in ids if isinstance(value, str))
        for path, part in content.responses:
            value = object_in(part, "functionResponse").get("id")
            if isinstance(value, str) and value not in called:
                yield f"{path}.{spelled(part, 'functionResponse')}.id", "no call has this id"


def w82_responses_are_objects(view: View) -> Found:
    """What a function returned is an object."""
    for path, response in view.responses():
        if not isinstance(response.get("response"), Mapping):
            yield f"{path}.response", "the response must be an object"


def w95_responses_hold_no_references(view: View) -> Found:
    """Keys of a response are not taken for references, save for those to its own media."""
    for path, response in view.responses():
        if _refers(response.get("response"), _media_names(response)):
            yield f"{path}.response", "$ref and $defs are taken for references"


def w96_responses_hold_no_media(view: View) -> Found:
    """Older models know no media in responses."""
    if view.target.media_in_results is False:
        for path, response in view.responses():
            if objects_in(response, "parts"):
                yield f"{path}.parts", "this model takes no media in a function response"


def _media_names(response: Object) -> set[object]:
    parts = [part for _, part in objects_in(response, "parts")]
    blobs = [object_in(part, kind) for part in parts for kind in ("inlineData", "fileData")]
    return {name for blob in blobs if isinstance(name := value_of(blob, "displayName"), str)}


def _refers(data: object, known: set[object]) -> bool:
    pending = [data]
    while pending:
        value = pending.pop()
        if isinstance(value, Mapping):
            for key in _REFERENCES.intersection(value):
                if not (isinstance(value[key], str) and value[key] in known):
                    return True
            pending += value.values()
        elif isinstance(value, (list, tuple)):
            pending += value
    return False
