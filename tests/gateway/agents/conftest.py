"""Agents from npm."""

from __future__ import annotations

import pytest

from tests.npm import Npm, programs


@pytest.fixture(scope="session")
def npm(tmp_path_factory: pytest.TempPathFactory) -> Npm:
    """Programs from npm."""
    return programs(tmp_path_factory.mktemp("npm"))
