"""The model picker: search, keyboard, names that no list contains."""

from __future__ import annotations

import pytest
from aiohttp import web

from dragoman.gateway.config.settings import GatewayConfig, ServerSettings
from tests.gateway.page import mock_data
from tests.gateway.page.browsing import Looking, until
from tests.gateway.page.flows import EVERY_WIDTH
from tests.gateway.page.pages import ECHO, TestPage
from tests.gateway.running import place, running, upstream

HOSTILE = "<img src=x onerror=alert(1)>\u202e"


@pytest.fixture
def many(monkeypatch: pytest.MonkeyPatch) -> None:
    """A gateway with hundreds of models, one of them with a hostile name."""
    made = [
        {"id": f"p{n % 7}:model-{n}", "name": f"model-{n}", "provider": f"p{n % 7}"}
        for n in range(700)
    ]
    made.append({"id": HOSTILE, "name": HOSTILE, "provider": "bad"})
    monkeypatch.setattr(mock_data, "MODELS", [*mock_data.MODELS, *made])


@pytest.mark.slow
@EVERY_WIDTH
@pytest.mark.usefixtures("many")
def test_a_model_is_found_by_search_and_chosen_by_key(looking: Looking) -> None:
    """Some words of its name or provider find one of hundreds; the list fits on the screen."""
    page = looking.go(wait=".model > button")
    until(page, "document.querySelector('.model > button').dataset.model !== ''")
    page.locator(".model > button").click()
    assert page.locator(".picker [role=option]").count() <= 101
    assert page.get_by_role("status").filter(has_text="more: search").is_visible()
    box = page.locator(".picker").bounding_box()
    width = page.viewport_size["width"]
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= width
    assert box["y"] >= 0
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.keyboard.type("P3 model-451")
    assert page.locator(".picker .provider").all_inner_texts() == ["p3"]
    page.keyboard.press("Enter")
    assert page.locator(".model > button").get_attribute("data-model") == "p3:model-451"
    assert page.evaluate("document.activeElement.dataset.model") == "p3:model-451"
    page.fill(".composer > textarea", "Hello")
    page.press(".composer > textarea", "Enter")
    page.wait_for_selector(".message.assistant:not(.live)")
    assert looking.asked("POST", "talk")[0]["model"] == "p3:model-451"


@pytest.mark.slow
@EVERY_WIDTH
@pytest.mark.usefixtures("many")
def test_a_name_is_text_and_an_unlisted_one_can_be_used(looking: Looking) -> None:
    """Markup in a provider's list is shown as text; Escape leaves the choice as it was."""
    page = looking.go(wait=".model > button")
    page.locator(".model > button").click()
    search = page.get_by_role("combobox", name="Search models")
    search.fill(HOSTILE)
    assert "<img src=x onerror=alert(1)>" in page.locator(".picker [role=option]").inner_text()
    before = page.locator(".model > button").get_attribute("data-model")
    search.press("Escape")
    assert page.locator(".picker").count() == 0
    assert page.locator(".model > button").get_attribute("data-model") == before
    page.locator(".model > button").click()
    page.get_by_role("combobox", name="Search models").fill("my-tuned-model")
    page.get_by_role("option", name="Use “my-tuned-model”").click()
    assert page.locator(".model > button").get_attribute("data-model") == "my-tuned-model"


def test_each_model_is_offered_once() -> None:
    """Without routes, models have two names for clients: the page shows the one with its place."""

    async def listed(_: web.Request) -> web.Response:
        return web.json_response({"data": [{"id": "gpt-5"}, {"id": "gpt-5-mini"}]})

    with upstream(listed) as url:
        places = {"openai": place("openai", "openai", url), ECHO.name: ECHO}
        config = GatewayConfig(
            places=places, aliases={"gpt-5": "openai:gpt-5"}, server=ServerSettings(history=None)
        )
        with running(config) as serving:
            page = TestPage(serving)
            found = [each["id"] for each in page.read("models")["models"]]
            page.close()
    assert found == ["gpt-5", "openai:gpt-5", "openai:gpt-5-mini", "echo:"]
