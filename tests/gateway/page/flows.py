"""Whole flows in a browser on a real gateway with scripted models, at the width of a screen."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.gateway.page.browsing import Looking, choose_model, opened, until
from tests.gateway.page.pages import TestPage
from tests.gateway.page.real import gateway_at

COMPOSER = ".composer > textarea"
WIDTHS: dict[str, dict[str, Any]] = {
    "desktop": {"viewport": {"width": 1280, "height": 800}},
    "phone": {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True},
}
EVERY_WIDTH = pytest.mark.parametrize("screen", WIDTHS.values(), ids=WIDTHS)
"""For tests that open a browser with the fixture or argument `screen`."""


class Flow:
    """The page in a browser, and the gateway behind it."""

    def __init__(self, gateway: TestPage, looking: Looking) -> None:
        self.gateway, self.looking, self.page = gateway, looking, looking.page

    def start(self, *script: Any) -> Any:
        """Open Talk with a scripted model."""
        self.gateway.script(*script)
        self.looking.go("", COMPOSER)
        choose_model(self.page, "scripted:")
        return self.page

    def say(self, text: str, answer: str | None = None) -> None:
        """Send a message, and wait for a text."""
        self.page.fill(COMPOSER, text)
        self.page.keyboard.press("Enter")
        if answer is not None:
            self.page.get_by_text(answer).wait_for()
            until(self.page, "!document.querySelector('.live')")

    def tab(self) -> Looking:
        """Another tab of the same browser."""
        made = Looking(self.page.context.new_page(), self.looking.address)
        made.complaints = self.looking.complaints
        return made


@contextmanager
def flowing(chromium: Any, folder: Path, **screen: Any) -> Generator[Flow]:
    """A gateway of its own, and a page on it."""
    with (
        gateway_at(folder) as (gateway, _),
        opened(chromium, f"{gateway.url}/ui/", **screen) as looking,
    ):
        yield Flow(gateway, looking)
