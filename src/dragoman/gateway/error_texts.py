"""What clients may read of an error inside a response with status 200.

It is the provider's sentence, as in an error of its own: without keys and internal addresses, of
limited length, and none where it concerns the operator's account.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from dragoman.errors import DragomanError, InvalidInputError
from dragoman.model.events import ChoiceFinish, Event, ResponseStart
from dragoman.model.jsontext import dumps, loads
from dragoman.model.responses import Response
from dragoman.wire.answer_errors import error_in, errors_among
from dragoman.wire.error_reporting import bounded, provider_sentence, reported

Shown = Callable[[str], str]
"""A text of an error → what clients may read of it."""
# Inside a string, the quote behind a name has a backslash.
_TELLING = re.compile(rb'"(?:error"\s*:\s*["{\[]|block_?[rR]eason")')


def shown_texts(error: DragomanError, mask: Shown) -> Shown:
    """What clients may read of the texts of an error; `mask` removes keys and addresses."""
    told = reported(error)
    sentence, said = provider_sentence(told), _words(told.said or "")

    def shown(text: str) -> str:
        words = _words(text)
        if sentence is None:  # codes and types stay
            return told.reason if " " in words else text
        found = sentence if said and words.startswith(said) else bounded(mask(text))
        return text if words == found else found

    return shown


def _words(text: str) -> str:
    return " ".join(text.split())


def may_hold_error(body: bytes) -> bool:
    """Whether a body has to be searched for errors; quick, and rarely wrong."""
    return _TELLING.search(body) is not None


# --- decoded


def shown_response(response: Response, shown: Shown) -> Response:
    """The response, with such texts in its errors."""
    choices = [
        choice.replace_unchecked(extras=_shown_extras(choice.extras, shown))
        for choice in response.choices
    ]
    return response.replace_unchecked(
        choices=tuple(choices), extras=_shown_extras(response.extras, shown)
    )


def holds_error(event: Event) -> bool:
    """Whether an event of a stream that goes on holds an error."""
    return isinstance(event, (ResponseStart, ChoiceFinish)) and error_in(event.extras) is not None


def shown_event(event: Any, shown: Shown) -> Any:
    """The event, with such texts in its error."""
    return event.replace(extras=_shown_extras(event.extras, shown))


def _shown_extras(extras: Mapping[str, Any], shown: Shown) -> Mapping[str, Any]:
    if error_in(extras) is None:
        return extras
    return {
        source: _shown_fields(fields, shown) if isinstance(fields, Mapping) else fields
        for source, fields in extras.items()
    }


# --- as JSON


def shown_body(body: bytes, shown: Shown) -> bytes:
    """A JSON object, with such texts in its errors; raises `InvalidInputError` if it isn't one."""
    wire = loads(body)
    if not isinstance(wire, dict):
        msg = "the body is not a JSON object"
        raise InvalidInputError(msg)
    return dumps(_shown_wire(wire, shown))


def _shown_wire(wire: Mapping[str, Any], shown: Shown) -> dict[str, Any]:
    found = _shown_fields(wire, shown)
    if isinstance(inner := found.get("response"), Mapping):  # an event of the Responses API
        found["response"] = _shown_fields(inner, shown)
    if isinstance(choices := found.get("choices"), list):
        found["choices"] = [
            _shown_fields(each, shown) if isinstance(each, Mapping) else each for each in choices
        ]
    if found.get("type") == "error" and isinstance(said := found.get("message"), str):
        found["message"] = shown(said)
    return found


def _shown_fields(fields: Mapping[str, Any], shown: Shown) -> dict[str, Any]:
    names = {told.field for told in errors_among(fields)}
    return {
        name: _every_text(value, shown) if name in names else value
        for name, value in fields.items()
    }


def _every_text(value: Any, shown: Shown) -> Any:
    if isinstance(value, Mapping):
        return {name: _every_text(each, shown) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_every_text(each, shown) for each in value]
    return shown(value) if isinstance(value, str) else value
