# ruff: noqa: INP001 - Python finds it on sys.path
"""Run by every Python that a test starts: hidden packages can't be imported there."""

import os
import sys

for _name in os.environ.get("DRAGOMAN_TEST_ABSENT", "").split():
    sys.modules[_name] = None  # type: ignore[assignment]  # how Python spells it
