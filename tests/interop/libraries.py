"""Libraries whose import says something that pytest would take for a fault of ours."""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import Any

with warnings.catch_warnings():
    # google-genai's source has an invalid escape sequence, which Python mentions when it compiles
    # it: once, where the compiled file can be kept, and on each import where it can't.
    warnings.simplefilter("ignore", DeprecationWarning)
    warnings.simplefilter("ignore", SyntaxWarning)
    types: Any = import_module("google.genai.types")
