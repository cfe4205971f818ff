"""Stored responses with middleware and a cache: both recognize state."""

from __future__ import annotations

from msgspec.structs import replace

from dragoman.gateway.middleware import Middleware
from dragoman.gateway.middleware.loading import hooks_of
from tests.gateway.answers import SAID, Provider
from tests.gateway.client_requests import ask
from tests.gateway.middleware.test_hooks import Loud
from tests.gateway.running import place, routed, running, upstream


def test_stored_responses_are_what_the_client_saw_and_never_cached() -> None:
    """Each has its own id and the changed text; responses that aren't stored are cached."""
    provider = Provider("openai-chat")
    with upstream(provider) as url:
        config = routed(place("lab", "openai-compatible", url), history="memory:")
        routes = tuple(replace(each, cache=60.0) for each in config.routes)
        with running(replace(config, routes=routes)) as serving:
            serving.gateway.middleware = Middleware([hooks_of("loud", Loud)], 20.0)
            body = {"model": "m", "input": "Where?"}
            first, second = (ask(serving.url, "/v1/responses", body) for _ in range(2))
            found = ask(serving.url, f"/v1/responses/{first.json['id']}", method="GET")
            follow = {**body, "previous_response_id": first.json["id"], "store": False}
            further = [ask(serving.url, "/v1/responses", follow) for _ in range(2)]
            plain = [ask(serving.url, "/v1/responses", {**body, "store": False}) for _ in range(2)]
    assert first.json["id"] != second.json["id"]
    assert found.json["output"][0]["content"][0]["text"] == SAID.upper()
    assert not any("x-dragoman-cache" in each.headers for each in (first, second, *further))
    assert [each.headers.get("x-dragoman-cache") for each in plain] in (
        [None, None], ["miss", "hit"],
    )  # fmt: skip
    assert len(provider.asked[2]["messages"]) == 3  # the stored turn, as the client saw it
    assert provider.asked[2]["messages"][1]["content"] == SAID.upper()
