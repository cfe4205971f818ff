"""Free-text tools (`custom`), for targets whose tools all take objects.

Such a tool is sent as a function with a single string argument; its calls are converted back.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

TEXT_ARGUMENT = "input"
"""The name of the argument that holds the text."""
TEXT_PARAMETERS: Mapping[str, Any] = {
    "type": "object",
    "properties": {TEXT_ARGUMENT: {"type": "string"}},
    "required": [TEXT_ARGUMENT],
}
SENT_AS_FUNCTION = f"a free-text tool is sent as a function with one argument, {TEXT_ARGUMENT!r}"


def as_text(arguments: Any) -> Any:
    """The text in the arguments of a call; the arguments themselves if they have another form.

    >>> as_text({"input": "*** Begin Patch"})
    '*** Begin Patch'
    """
    if isinstance(arguments, Mapping) and arguments.keys() == {TEXT_ARGUMENT}:
        text = arguments[TEXT_ARGUMENT]
        return text if isinstance(text, str) else arguments
    return arguments
