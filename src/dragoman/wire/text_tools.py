"""Tools that take free text (`custom`), for targets whose tools all take objects.

Such a tool is sent as a function with one argument that is a text; its calls come back as what was
asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

TEXT_ARGUMENT = "input"
"""The name under which a text that is no object stands in one."""
TEXT_PARAMETERS: Mapping[str, Any] = {
    "type": "object",
    "properties": {TEXT_ARGUMENT: {"type": "string"}},
    "required": [TEXT_ARGUMENT],
}
SENT_AS_FUNCTION = f"a tool that takes text is sent as one that takes it as {TEXT_ARGUMENT!r}"


def as_text(arguments: Any) -> Any:
    """The text in the arguments of a call; what the model made of it where there is none.

    >>> as_text({"input": "*** Begin Patch"})
    '*** Begin Patch'
    """
    if isinstance(arguments, Mapping) and arguments.keys() == {TEXT_ARGUMENT}:
        text = arguments[TEXT_ARGUMENT]
        return text if isinstance(text, str) else arguments
    return arguments
