"""Takes the pictures of the web page: docs/images/page-*.png.

    python docs/record_page.py

The page itself runs in the system's Chromium, on made-up data (tests/gateway/page/mock_api.py).
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
IMAGES = ROOT / "docs" / "images"
sys.path.insert(0, str(ROOT))

from tests.gateway.page.browsing import browser, opened, serving  # noqa: E402 - beside the docs
from tests.gateway.page.mock_state import Mock  # noqa: E402 - as above

PHONE = {"viewport": {"width": 360, "height": 740}, "is_mobile": True, "has_touch": True}
DARK = {"color_scheme": "dark"}
PICTURES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "talk": ("#/talk/c0", "#m-m6", {}),
    "lens": ("#/lens", ".recent-list button", {}),
    "history": ("#/history", ".history-row", {}),
    "traffic": ("#/traffic", ".uplot canvas", DARK),
    "keys": ("#/keys", ".hops", {}),
    "phone": ("#/talk/c0", "#m-m6", PHONE),
}
"""By name: the view, what it waits for, and the screen."""


def main() -> None:
    """Take each picture."""
    with browser() as chromium:
        for name, (place, wait, screen) in PICTURES.items():
            mock = Mock(conversations=300, pace=0)
            with serving(mock) as address, opened(chromium, address, mock, **screen) as looking:
                page = looking.go(place, wait)
                if name == "lens":
                    page.locator(wait).first.click()
                    page.wait_for_selector(".lens-row")
                page.wait_for_timeout(1500)  # formulas and fonts
                if place.startswith("#/talk"):
                    page.locator(".message", has=page.locator("table")).first.evaluate(
                        "(message) => message.scrollIntoView()"
                    )
                    page.wait_for_timeout(500)
                page.screenshot(path=str(IMAGES / f"page-{name}.png"))


if __name__ == "__main__":
    main()
