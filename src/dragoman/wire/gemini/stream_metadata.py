"""What the chunks of a stream say of a candidate beside its content, put together.

As recordings show, sources for grounding come whole, mostly at the end and before that as an
empty object; passages that are quoted come as they are found, and grow from chunk to chunk; log
probabilities are those of the chunk's own tokens. Of anything else the last word counts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dragoman.wire.gemini.finish import decode_finish
from dragoman.wire.gemini.trace import is_array, is_object

Fields = dict[str, Any]
_BARE = 2  # fields: content and index
_UNSPECIFIED = "FINISH_REASON_UNSPECIFIED"


def _is_finish(fields: Fields) -> bool:
    """Whether a chunk says why its candidate ended; the word for "not said" does not."""
    finish, word = decode_finish(fields.get("finishReason", fields.get("finish_reason")), False)  # noqa: FBT003 - whether there are calls
    return finish is not None and word != _UNSPECIFIED


class Metadata:
    """The fields of a candidate, its content aside."""

    __slots__ = ("_places", "fields")

    def __init__(self) -> None:
        self.fields: Fields = {}
        self._places: dict[tuple[Any, ...], int] = {}  # of passages in their list

    def learn(self, fields: Fields) -> bool:
        """Add those of one more chunk; whether it says why the candidate ended."""
        if len(fields) == _BARE and "content" in fields and type(fields.get("index")) is int:
            self.fields["index"] = fields["index"]  # most chunks say no more
            return False
        self._learn(fields)
        return _is_finish(fields)

    def _learn(self, fields: Fields) -> None:
        for key, value in fields.items():
            if key == "content":
                continue
            known = self.fields.get(key)
            merge = _MERGES.get(key)
            if merge is not None and is_object(value):
                if not is_object(known):
                    self.fields[key] = known = {}
                merge(self, known, value)
            elif value is not None or key not in self.fields:
                self.fields[key] = value

    def replace(self, known: Fields, fields: Fields) -> None:
        """Take the last word on each field that has one."""
        known.update({key: value for key, value in fields.items() if value or key not in known})

    def lengthen(self, known: Fields, fields: Fields) -> None:
        """Go on with the lists."""
        for key, value in fields.items():
            old = known.get(key)
            if is_array(old) and is_array(value):
                old.extend(value)
            elif value is not None or key not in known:
                known[key] = value

    def find(self, known: Fields, fields: Fields) -> None:
        """Add passages; one that begins where a known one does is the same, grown."""
        for key, value in fields.items():
            listed = known.setdefault(key, [] if is_array(value) else value)
            if is_array(listed) and is_array(value):
                self._add(listed, value, key)

    def _add(self, listed: list[Any], sources: list[Any], key: str) -> None:
        before = len(listed)
        for source in sources:
            place = (key, *_place(source))
            number = self._places.setdefault(place, len(listed))
            if number < before and is_object(source):
                listed[number] = source
            else:
                listed.append(source)


def _place(source: Any) -> tuple[Any, ...]:
    """Where a passage begins, and whose it is."""
    if not is_object(source):
        return ()
    start, uri = source.get("startIndex"), source.get("uri")
    return (start if type(start) is int else 0, uri if type(uri) is str else None)


_MERGES: dict[str, Callable[[Metadata, Fields, Fields], None]] = {
    "groundingMetadata": Metadata.replace,
    "grounding_metadata": Metadata.replace,
    "urlContextMetadata": Metadata.replace,
    "url_context_metadata": Metadata.replace,
    "citationMetadata": Metadata.find,
    "citation_metadata": Metadata.find,
    "logprobsResult": Metadata.lengthen,
    "logprobs_result": Metadata.lengthen,
}
