"""The one door between Python values and JSON text.

msgspec does the work. What it can't do is done here, slowly, when it occurs: lone surrogates
(half a character, which models and file systems do produce) are written as escapes and read
back; and its error texts, which quote values, never get out.

Numbers that no double can hold (`1e400`, `NaN`) are refused on reading: Python would turn them
into an infinity and the next writer into `null`. Of duplicate keys the last wins, as everywhere.
The two halves of a character, side by side, are read as that character: JSON has no other way.
"""

from __future__ import annotations

import re
from math import isfinite
from typing import Any, Never, TypeVar

import msgspec

from dragoman.errors import InvalidInputError
from dragoman.model.frozen import frozen_hook

T = TypeVar("T")
JsonText = bytes | bytearray | memoryview | str

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode

_BOM = b"\xef\xbb\xbf"
# The shapes of msgspec's messages that name types and field names of ours, and nothing else.
_SAFE = re.compile(
    r"(?:Expected `[\w |]+`, got `\w+`|Object missing required field `\w+`)"
    r"(?: - at `\$[\w.\[\]]*`)?"
)
_PATH = re.compile(r"- at `(\$[\w.\[\]]*)`$")


class _OutOfRangeError(ValueError):
    pass


def dumps(value: Any) -> bytes:
    """JSON bytes of a value made of JSON values and model values: UTF-8, no spaces."""
    try:
        return _encode(value)
    except UnicodeEncodeError:
        problem = None
    except RecursionError:
        problem = "the value nests too deeply to be written as JSON"
    except (TypeError, ValueError, OverflowError) as error:
        problem = f"the value can't be written as JSON ({type(error).__name__})"
    # Outside the handler: an exception raised within would carry msgspec's as its context.
    if problem is None:
        return _dumps_ascii(value)
    raise InvalidInputError(problem)


def indented(raw: bytes) -> bytes:
    """The same JSON over several lines, for people to read."""
    value = loads(raw)
    try:
        return msgspec.json.format(_encode(value), indent=2)
    except UnicodeEncodeError:
        pass
    import json

    return json.dumps(value, indent=2).encode("ascii")


def check_readable(raw: bytes, decoder: msgspec.json.Decoder[Any]) -> None:
    """Raise unless what was just written can be read: a value may hold what its types forbid."""
    try:
        loads_as(raw, decoder)
    except InvalidInputError as error:
        problem = f"the value can't be stored: {error}"
    else:
        return
    raise InvalidInputError(problem)


def loads(raw: JsonText) -> Any:
    """The value that JSON text stands for; raises `InvalidInputError` without quoting the text."""
    try:
        return _decode(raw)
    except Exception as error:  # noqa: BLE001 - whatever it is, `_second_try` or a clean error follows
        problem = _explain(error, raw)
    if problem is None:
        return _second_try(raw)
    raise InvalidInputError(problem)


def loads_as(raw: JsonText, decoder: msgspec.json.Decoder[T]) -> T:
    """As `loads`, into the decoder's type."""
    try:
        return decoder.decode(raw)
    except Exception as error:  # noqa: BLE001 - as above
        problem = _explain(error, raw)
    if problem is None:
        converted: T = convert(_second_try(raw), decoder.type)
        return converted
    raise InvalidInputError(problem)


def convert(value: Any, kind: Any) -> Any:
    """A value made of JSON values as another type; raises without quoting it."""
    try:
        return msgspec.convert(value, kind, dec_hook=frozen_hook)
    except InvalidInputError as error:
        problem = str(error)
    except (msgspec.ValidationError, RecursionError) as error:
        problem = _explain(error, "") or "the JSON holds a number that is out of range"
    except Exception:  # noqa: BLE001 - what is no type, or a type's own complaint, which may quote
        problem = "the JSON can't be read as this type"
    raise InvalidInputError(problem)


def _explain(error: Exception, raw: JsonText) -> str | None:
    """What to tell the caller; None where a second try with the standard library may succeed."""
    if isinstance(error, InvalidInputError):
        return str(error)
    if isinstance(error, RecursionError):
        return "the JSON nests too deeply"
    if isinstance(error, msgspec.ValidationError):
        return _explain_validation(error)
    if isinstance(error, (msgspec.DecodeError, UnicodeError)):
        return None
    return f"JSON text must be bytes or str, not {type(raw).__name__}"


def _explain_validation(error: msgspec.ValidationError) -> str | None:
    # msgspec wraps what `__post_init__` raises and quotes it; ours are safe and say more.
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
        return f"the JSON holds a number that is out of range{where}"
    return f"the JSON holds a value that is not allowed there{where}"


def _dumps_ascii(value: Any) -> bytes:
    """As `dumps`, escaping everything but ASCII: the only way to write half a surrogate pair."""
    import json

    try:
        plain = msgspec.to_builtins(value)
        return json.dumps(plain, separators=(",", ":"), allow_nan=False).encode("ascii")
    except RecursionError:
        problem = "the value nests too deeply to be written as JSON"
    except (TypeError, ValueError, OverflowError) as error:
        problem = f"the value can't be written as JSON ({type(error).__name__})"
    raise InvalidInputError(problem)


def _second_try(raw: JsonText) -> Any:
    """As `loads`, with the standard library: it takes lone surrogates, and says where it fails."""
    import json

    try:
        text = raw if isinstance(raw, str) else bytes(raw).removeprefix(_BOM).decode("utf-8")
        return json.loads(text, parse_float=_finite, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        problem = f"the JSON is malformed at character {error.pos}"
    except UnicodeError:
        problem = "the JSON is not UTF-8"
    except RecursionError:
        problem = "the JSON nests too deeply"
    except _OutOfRangeError:
        problem = "the JSON holds a number that is out of range"
    except ValueError:  # more digits than Python converts
        problem = "the JSON holds an integer that is out of range"
    raise InvalidInputError(problem)


def _finite(text: str) -> float:
    number = float(text)
    if isfinite(number):
        return number
    raise _OutOfRangeError


def _no_constant(_text: str) -> Never:
    raise _OutOfRangeError  # NaN, Infinity, -Infinity
