# ruff: noqa: INP001 - it is found on sys.path, as Python wants it
"""Run by every Python that a test starts: what counts as absent can't be imported there."""

import os
import sys

for _name in os.environ.get("DRAGOMAN_TEST_ABSENT", "").split():
    sys.modules[_name] = None  # type: ignore[assignment]  # how Python spells it
