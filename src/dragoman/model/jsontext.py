"""Converts between Python values and JSON text; the only module that does.

msgspec does the work. A slower fallback handles lone surrogates, which models and file systems do
produce: they are written as escapes and read back. msgspec's error messages quote values, so they
are always replaced by safe ones.

Numbers that don't fit a double (`1e400`, `NaN`) are rejected on reading: Python would turn them
into infinity, and the next writer into `null`. The last of several duplicate keys wins. A high and
a low surrogate next to each other are read as one character, as JSON defines.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from math import isfinite
from threading import RLock
from typing import Any, Never, TypeVar

import msgspec

from dragoman.errors import InvalidInputError
from dragoman.model.frozen import frozen_hook

T = TypeVar("T")
JsonText = bytes | bytearray | memoryview | str

_encode = msgspec.json.Encoder().encode
_encode_sorted = msgspec.json.Encoder(order="deterministic").encode
_decode = msgspec.json.Decoder().decode
_describing = RLock()

_BOM = b"\xef\xbb\xbf"
# The forms of msgspec's messages that contain only type names and our field names.
_SAFE = re.compile(
    r"(?:Expected `[\w |]+`, got `\w+`|Object missing required field `\w+`)"
    r"(?: - at `\$[\w.\[\]]*`)?"
)
_PATH = re.compile(r"- at `(\$[\w.\[\]]*)`$")


class _OutOfRangeError(ValueError):
    pass


def dumps(value: Any) -> bytes:
    """Encodes JSON values and model values as JSON: UTF-8, without whitespace."""
    return _dumped(value, _encode)


def dumps_sorted(value: Any) -> bytes:
    """Like `dumps`, with the keys of mappings in order: equal values give equal bytes."""
    return _dumped(value, _encode_sorted)


def _dumped(value: Any, encode: Callable[[Any], bytes]) -> bytes:
    try:
        return encode(value)
    except UnicodeEncodeError:
        problem = None
    except RecursionError:
        problem = "the value is nested too deeply to be encoded as JSON"
    except (TypeError, ValueError, OverflowError) as error:
        problem = f"the value can't be encoded as JSON ({type(error).__name__})"
    # Outside the handler: an exception raised inside it would have msgspec's as its context.
    if problem is None:
        return _dumps_ascii(value, is_sorted=encode is _encode_sorted)
    raise InvalidInputError(problem)


def indented(raw: bytes) -> bytes:
    """Formats JSON over several lines, for people to read."""
    value = loads(raw)
    try:
        return msgspec.json.format(_encode(value), indent=2)
    except UnicodeEncodeError:
        pass
    import json

    return json.dumps(value, indent=2).encode("ascii")


def check_readable(raw: bytes, decoder: msgspec.json.Decoder[Any]) -> None:
    """Raises unless what was just written can be read: a field may hold a value of a wrong type."""
    try:
        loads_as(raw, decoder)
    except InvalidInputError as error:
        problem = f"the value can't be stored: {error}"
    else:
        return
    raise InvalidInputError(problem)


def loads(raw: JsonText) -> Any:
    """Decodes JSON; raises `InvalidInputError`, whose message never quotes the text."""
    try:
        return _decode(raw)
    except Exception as error:  # noqa: BLE001 - `_loads_stdlib` or a safe error follows in every case
        problem = _explain(error, raw)
    if problem is None:
        return _loads_stdlib(raw)
    raise InvalidInputError(problem)


def decoder_of(kind: type[T] | Any) -> msgspec.json.Decoder[T]:
    """A decoder for a type that holds values of the model.

    msgspec describes a struct when it is first used. Another thread that uses the unfinished
    description crashes the process, so one thread does it at a time.
    """
    try:
        with _describing:
            return msgspec.json.Decoder(kind, dec_hook=frozen_hook)
    except TypeError:
        msg = "values of this type can't be decoded"  # msgspec quotes it
    raise InvalidInputError(msg)


def plain_decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    """A decoder for a type without values of the model: as it is, and safe beside other threads."""
    try:
        with _describing:
            return msgspec.json.Decoder(kind)
    except TypeError:
        msg = "values of this type can't be decoded"  # msgspec quotes it
    raise InvalidInputError(msg)


_described = lru_cache(1024)(decoder_of)


def _describe(kind: Any) -> None:
    """Has msgspec describe a type; a type that it refuses is for the caller to report."""
    with _describing, suppress(TypeError):
        try:
            _described(kind)
        except TypeError:  # not hashable
            decoder_of(kind)


def loads_as(raw: JsonText, decoder: msgspec.json.Decoder[T]) -> T:
    """Like `loads`, into the decoder's type."""
    try:
        return decoder.decode(raw)
    except Exception as error:  # noqa: BLE001 - as above
        problem = _explain(error, raw)
    if problem is None:
        converted: T = convert(_loads_stdlib(raw), decoder.type)
        return converted
    raise InvalidInputError(problem)


def convert(value: Any, kind: Any) -> Any:
    """Converts a decoded JSON value to another type; error messages never quote the value."""
    try:
        _describe(kind)
        return msgspec.convert(value, kind, dec_hook=frozen_hook)
    except InvalidInputError as error:
        problem = str(error)
    except (msgspec.ValidationError, RecursionError) as error:
        problem = _explain(error, "") or "the JSON contains a number that is out of range"
    except Exception:  # noqa: BLE001 - an invalid type, or the type's own error, which may quote
        problem = "the JSON can't be read as this type"
    raise InvalidInputError(problem)


def _explain(error: Exception, raw: JsonText) -> str | None:
    """The error message, or `None` if a second attempt with the standard library may succeed."""
    if isinstance(error, InvalidInputError):
        return str(error)
    if isinstance(error, RecursionError):
        return "the JSON is nested too deeply"
    if isinstance(error, msgspec.ValidationError):
        return _explain_validation(error)
    if isinstance(error, (msgspec.DecodeError, UnicodeError)):
        return None
    return f"JSON text must be bytes or str, not {type(raw).__name__}"


def _explain_validation(error: msgspec.ValidationError) -> str | None:
    # msgspec wraps and quotes what `__post_init__` raises; our own messages are safe and say more.
    cause = error.__cause__
    path = _PATH.search(str(error))
    where = f" - at `{path[1]}`" if path else ""
    if isinstance(cause, InvalidInputError):
        return f"{cause}{where}"
    if _SAFE.fullmatch(str(error)):
        return str(error)
    if str(error).startswith("Integer value out of range"):
        return None  # msgspec counts the sign as a digit; Python does not
    if "out of range" in str(error):
        return f"the JSON contains a number that is out of range{where}"
    return f"the JSON contains a value that is not allowed here{where}"


def _dumps_ascii(value: Any, *, is_sorted: bool = False) -> bytes:
    """Like `dumps`, with everything but ASCII escaped: the only way to encode a lone surrogate."""
    import json

    try:
        plain = msgspec.to_builtins(value)
        return json.dumps(
            plain, separators=(",", ":"), allow_nan=False, sort_keys=is_sorted
        ).encode("ascii")
    except RecursionError:
        problem = "the value is nested too deeply to be encoded as JSON"
    except (TypeError, ValueError, OverflowError) as error:
        problem = f"the value can't be encoded as JSON ({type(error).__name__})"
    raise InvalidInputError(problem)


def _loads_stdlib(raw: JsonText) -> Any:
    """Like `loads`, with the standard library: accepts lone surrogates, reports the position."""
    import json

    try:
        text = raw if isinstance(raw, str) else bytes(raw).removeprefix(_BOM).decode("utf-8")
        return json.loads(text, parse_float=_finite, parse_constant=_reject_constant)
    except json.JSONDecodeError as error:
        problem = f"the JSON is malformed at character {error.pos}"
    except UnicodeError:
        problem = "the JSON is not UTF-8"
    except RecursionError:
        problem = "the JSON is nested too deeply"
    except _OutOfRangeError:
        problem = "the JSON contains a number that is out of range"
    except ValueError:  # more digits than Python converts
        problem = "the JSON contains an integer that is out of range"
    raise InvalidInputError(problem)


def _finite(text: str) -> float:
    number = float(text)
    if isfinite(number):
        return number
    raise _OutOfRangeError


def _reject_constant(_text: str) -> Never:
    raise _OutOfRangeError  # NaN, Infinity, -Infinity
