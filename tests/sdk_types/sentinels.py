"""Values that can be traced: each text, number and time is unique."""

from __future__ import annotations

import base64
import json
import re
from typing import Any

_URLS = re.compile(r"(^|_)(url|uri)$|Ur[li]$|^(homepage|website)$")
_BASE64 = re.compile(
    r"^(data|file_data|fileData|b64_json|images?|thought_signature|thoughtSignature|signature|"
    r"imageBytes|videoBytes|result|partial_image_b64)$"
)
_SCHEMAS = re.compile(
    r"^(parameters|input_schema|inputSchema|schema|output_schema|parametersJsonSchema|"
    r"responseJsonSchema|responseSchema)$"
)
_MIMES = re.compile(r"^(mime_type|mimeType|media_type|mediaType)$")
_ARGUMENTS = re.compile(r"^(arguments|partial_json)$")
_ORDER = re.compile(r"^(index|\w+_index|sequence_number)$")
"""Numbers that say which one it is; offsets into texts end in `_index` too."""
_OFFSETS = re.compile(r"^(start|end|document|search_result)_")


class Sentinels:
    """Creates unique values and records them."""

    def __init__(self) -> None:
        self._count = 0
        self.made: dict[str, str] = {}
        """How each shows in JSON, and the name of its field."""

    def _next(self) -> int:
        self._count += 1
        return self._count

    def text(self, name: str = "") -> str:
        """A text that occurs nowhere else."""
        made = f"s{self._next():05}"
        self.made[made] = name
        return made

    def leaf(self, kind: str, name: str) -> Any:
        """A value for a field of that name."""
        if kind in ("int", "float"):
            return self._number(kind, name)
        if kind == "bool":
            return True
        if kind in ("time", "date"):
            return self._moment(kind, name)
        if kind == "any" or _SCHEMAS.search(name):
            return self._anything(name)
        return self._str(kind, name)

    def _number(self, kind: str, name: str) -> float:
        if kind == "int" and _ORDER.search(name) and not _OFFSETS.search(name):
            return 0
        number = 70_000 + self._next()
        self.made[str(number)] = name
        return number if kind == "int" else float(f"0.{number}")

    def _moment(self, kind: str, name: str) -> str:
        number = 700_000 + self._next()
        if kind == "date":
            return "2026-01-01"
        self.made[str(number)] = name
        return f"2026-01-01T00:00:00.{number}Z"

    def _anything(self, name: str) -> dict[str, Any]:
        if not _SCHEMAS.search(name):
            return {self.text(name): self.text(name)}
        described = {"type": "string", "description": self.text(name)}
        return {"type": "object", "properties": {self.text(name): described}}

    def _str(self, kind: str, name: str) -> str:
        if _MIMES.search(name):
            return "image/png"
        if kind == "bytes" or _BASE64.search(name):
            made = base64.b64encode(f"s{self._next():05}...".encode()).decode()
            self.made[made] = name
            return made
        if _ARGUMENTS.search(name):
            return json.dumps({self.text(name): self.text(name)})
        if name == "jsonPath":
            return f"$.{self.text(name)}"
        return f"https://example.com/{self.text(name)}" if _URLS.search(name) else self.text(name)
