"""One browser for all tests of the page, one mock and one page for each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.gateway.page.browsing import Looking, browser, opened, serving
from tests.gateway.page.mock_state import Mock
from tests.gateway.page.pages import TestPage, page_at, url_of


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """A headless browser. Its loop runs in this thread: it must be gone for the tests of others."""
    with browser() as made:
        yield made


@pytest.fixture
def mock() -> Mock:
    """The API with made-up data."""
    return Mock(conversations=300, pace=0)


@pytest.fixture
def screen() -> dict[str, Any]:
    """How the browser's window is; tests parametrise it."""
    return {"viewport": {"width": 1280, "height": 800}}


@pytest.fixture
def looking(chromium: Any, mock: Mock, screen: dict[str, Any]) -> Iterator[Looking]:
    """A page on the mock API; any browser error fails the test."""
    with serving(mock) as address, opened(chromium, address, mock, **screen) as made:
        yield made


@pytest.fixture(scope="module", params=["sqlite", "files"])
def page(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[TestPage]:
    """A page whose conversations are in a store of each kind."""
    with page_at(url_of(request.param, tmp_path_factory.mktemp("page"))) as made:
        yield made
