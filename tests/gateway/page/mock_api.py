"""The page's API with made-up data, for looking at the page and for its tests.

Run it: `python -m tests.gateway.page.mock_api [PORT]`, then open `http://127.0.0.1:PORT/ui/`.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web

from dragoman.gateway.page.api import FILE_HEADERS, static_files
from tests.gateway.page import mock_data as data
from tests.gateway.page.mock_lens import RULES, comparison, sent
from tests.gateway.page.mock_state import Mock

KEY = "dgm-admin-key"
_PREFIX = "/{prefix:(?:proxied/)?}"


# --- HTTP

routes = web.RouteTableDef()
MOCK: web.AppKey[Mock] = web.AppKey("mock", Mock)


def mock(request: web.Request) -> Mock:
    """The data behind a request."""
    return request.app[MOCK]


@web.middleware
async def guarded(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """Checks the headers that the real API requires."""
    if "/ui/api/" not in request.path:
        return await handler(request)
    if request.headers.get("x-dragoman-page") != "1":
        return problem(403, "the header x-dragoman-page is missing")
    if mock(request).needs_key and request.headers.get("authorization") != f"Bearer {KEY}":
        return problem(401, "an admin key is needed")
    body = await request.read()
    try:
        told = json.loads(body) if body else None
    except ValueError:
        told = body
    mock(request).asked.append((request.method, request.path.partition("/ui/api/")[2], told))
    try:
        return await handler(request)
    except web.HTTPNotFound:
        return problem(404, "there is nothing of that id")


def problem(status: int, message: str) -> web.Response:
    return web.json_response({"error": {"message": message, "kind": "refused"}}, status=status)


async def stream(request: web.Request) -> tuple[web.StreamResponse, Any]:
    response = web.StreamResponse(headers={"content-type": "text/event-stream"})
    await response.prepare(request)

    async def emit(event: Any) -> None:
        await response.write(f"data: {json.dumps(event)}\n\n".encode())

    return response, emit


@routes.get(_PREFIX + "ui")
async def to_page(_: web.Request) -> web.Response:
    return web.Response(status=308, headers={"location": "ui/"})


@routes.get(_PREFIX + "ui/api/info")
async def info(request: web.Request) -> web.Response:
    return web.json_response({
        "version": "0", "needs_key": mock(request).needs_key, "has_history": True, "has_keys": True, "has_traffic": True,
        "keeps_bodies": False, "dialects": data.DIALECTS, "targets": data.TARGETS, "default_model": data.MODELS[0]["id"],
        "fronts": data.DIALECTS, "formats": data.FORMATS, "tools": ["weather"], "has_prompts": True,
    })  # fmt: skip


@routes.get(_PREFIX + "ui/api/models")
async def models(_: web.Request) -> web.Response:
    return web.json_response({"models": data.MODELS})


@routes.get(_PREFIX + "ui/api/conversations")
async def listed(request: web.Request) -> web.Response:
    query = request.query
    return web.json_response(
        mock(request).page(
            query.get("query", ""), query.get("cursor", ""), int(query.get("limit", 50))
        )
    )


@routes.get(_PREFIX + "ui/api/conversations/{id}")
async def opened(request: web.Request) -> web.Response:
    query = request.query
    found = mock(request).view(
        request.match_info["id"],
        int(query.get("branch") or 0),
        query.get("before"),
        int(query.get("limit", 200)),
    )
    return web.json_response(found)


@routes.patch(_PREFIX + "ui/api/conversations/{id}")
async def changed(request: web.Request) -> web.Response:
    for row in mock(request).rows:
        if row["id"] == request.match_info["id"]:
            row.update(await request.json())
    return web.json_response({})


@routes.delete(_PREFIX + "ui/api/conversations/{id}")
async def deleted(request: web.Request) -> web.Response:
    made = mock(request)
    made.rows = [row for row in made.rows if row["id"] != request.match_info["id"]]
    return web.json_response({"deleted": 1})


@routes.get(_PREFIX + "ui/api/tags")
async def tagged(request: web.Request) -> web.Response:
    names = sorted({name for row in mock(request).rows for name in row.get("tags", ())})
    return web.json_response({"tags": [{"name": name, "conversations": 1} for name in names]})


@routes.get(_PREFIX + "ui/api/prompts")
async def prompts(_: web.Request) -> web.Response:
    brief = {"name": "brief", "text": "Sum up in one sentence: $input", "variables": []}
    broken = {"name": "broken", "problem": "template broken: is not TOML (line 1)"}
    return web.json_response({"prompts": [brief, broken]})


@routes.post(_PREFIX + "ui/api/conversations/{id}/fork")
async def forked(request: web.Request) -> web.Response:
    made, name = mock(request), request.match_info["id"]
    old = next(row for row in made.rows if row["id"] == name)
    new: dict[str, Any] = {
        **old,
        "id": f"f{next(made.numbers)}",
        "title": f"{old['title']} (fork)",
        "pinned": False,
    }
    made.rows.insert(0, new)
    made.threads[new["id"]] = {0: list(made.thread(name)[0])}
    return web.json_response({"id": new["id"], "branch": 0})


@routes.get(_PREFIX + "ui/api/conversations/{id}/export")
async def exported(request: web.Request) -> web.Response:
    return web.json_response(
        {"format": request.query["format"], "conversation": request.match_info["id"]}
    )


@routes.get(_PREFIX + "ui/api/conversations/{id}/sent")
async def was_sent(_: web.Request) -> web.Response:
    return web.json_response(sent())


@routes.post(_PREFIX + "ui/api/import")
async def imported(request: web.Request) -> web.Response:
    if not request.query["name"].endswith(".json"):
        return problem(400, "the file is in no known format")
    made = mock(request)
    row = {
        "id": f"i{next(made.numbers)}",
        "title": "Imported talk",
        "first_line": "",
        "model": "gpt-5",
        "messages": 2,
        "updated_at": time.time(),
        "pinned": False,
    }
    made.rows.insert(0, row)
    return web.json_response(
        {"conversations": [{"id": row["id"], "title": row["title"], "messages": 2}], "losses": []}
    )


@routes.post(_PREFIX + "ui/api/forget")
async def forgotten(_: web.Request) -> web.Response:
    return web.json_response({"conversations": 12, "messages": 340})


@routes.get(_PREFIX + "ui/api/media/{id}")
async def media(request: web.Request) -> web.Response:
    if request.match_info["id"] == "window":
        return web.Response(body=data.PICTURE, content_type="image/png")
    return web.Response(body=b"a,b\n1,2\n", content_type="text/csv")


@routes.post(_PREFIX + "ui/api/talk")
async def talked(request: web.Request) -> web.StreamResponse:
    body = await request.json()
    response, emit = await stream(request)
    await mock(request).talk(body, emit)
    return response


@routes.post(_PREFIX + "ui/api/talk/{run}/approve")
async def approved(request: web.Request) -> web.Response:
    body = await request.json()
    mock(request).approvals.pop(body["call_id"]).set_result(body["allow"])
    return web.json_response({})


@routes.post(_PREFIX + "ui/api/talk/{run}/stop")
async def stopped(request: web.Request) -> web.Response:
    mock(request).stops[request.match_info["run"]].set()
    return web.json_response({})


@routes.post(_PREFIX + "ui/api/lens")
async def lens(request: web.Request) -> web.Response:
    body = await request.json()
    if body.get("body") is not None and "messages" not in body["body"]:
        return problem(400, "the body is in no known dialect")
    count = 2000 if body.get("conversation") == "c1" else 6
    return web.json_response(comparison(body["left"], body["right"], count))


@routes.get(_PREFIX + "ui/api/rules")
async def rules(_: web.Request) -> web.Response:
    return web.json_response({"rules": RULES})


@routes.post(_PREFIX + "ui/api/snippet")
async def snippet(request: web.Request) -> web.Response:
    body = await request.json()
    return web.json_response({"text": f"a {body['form']} snippet of the {body['side']} side"})


@routes.get(_PREFIX + "ui/api/traffic")
async def traffic(request: web.Request) -> web.Response:
    query = request.query
    rows = [
        one
        for one in mock(request).requests
        if all(
            not query.get(name) or one[name] == query[name]
            for name in ("front", "route", "model", "key")
        )
    ]
    if query.get("status") == "error":
        rows = [one for one in rows if one["status"] >= 400 and not one["left"]]
    start, limit = int(query.get("cursor") or 0), int(query.get("limit", 100))
    end = start + limit
    facets = {
        "fronts": data.DIALECTS,
        "routes": ["cheap", "coding", "default"],
        "models": [one["name"] for one in data.MODELS],
        "keys": ["ci", "nightly", "team-web"],
    }
    return web.json_response(
        {
            "items": rows[start:end],
            "cursor": str(end) if end < len(rows) else None,
            "facets": facets,
        }
    )


@routes.get(_PREFIX + "ui/api/traffic/live")
async def live(request: web.Request) -> web.StreamResponse:
    response, emit = await stream(request)
    for number in range(1_000_000, 2_000_000):
        await asyncio.sleep(0.4)
        await emit(data.request(number, time.time()))
    return response


@routes.get(_PREFIX + "ui/api/traffic/series")
async def plotted(request: web.Request) -> web.Response:
    since, step = float(request.query["since"]), float(request.query["step"])
    steps = [since + number * step for number in range(60)]
    names = {"key": ["team-web", "nightly", "ci"], "front": data.DIALECTS}.get(
        request.query["by"], [str(one["name"]) for one in data.MODELS]
    )
    return web.json_response({"steps": steps, "series": data.series(steps, names)})


@routes.get(_PREFIX + "ui/api/traffic/{id}")
async def one_request(request: web.Request) -> web.Response:
    name = request.match_info["id"]
    row = data.request(int(name[1:]), time.time())
    total = row["seconds"]
    layers = [
        ("guard", "the key was accepted", 0.0, 0.004),
        ("routing", "route default, 2 hops", 0.004, 0.002),
        ("translation", "openai-chat → anthropic", 0.006, 0.01),
        ("upstream", "anthropic answered 200", 0.016, 0.9),
        ("front", "events written as openai-chat", 0.3, 0.65),
        ("ledger", "usage and cost noted", 0.96, 0.01),
    ]
    path = [
        {"layer": layer, "what": what, "at": (at + share) * total, "seconds": share * total}
        for layer, what, at, share in layers
    ]
    return web.json_response({**row, "path": path})


@routes.get(_PREFIX + "ui/api/keys")
async def keys(request: web.Request) -> web.Response:
    return web.json_response({"keys": mock(request).keys})


@routes.post(_PREFIX + "ui/api/keys")
async def created(request: web.Request) -> web.Response:
    body = await request.json()
    made = {
        **body,
        "id": f"key_{next(mock(request).numbers)}",
        "created_at": time.time(),
        "revoked_at": None,
    }
    mock(request).keys.insert(0, made)
    return web.json_response({"key": made, "secret": "dgm-not-a-real-secret-0123456789"})


@routes.post(_PREFIX + "ui/api/keys/{id}/revoke")
async def revoked(request: web.Request) -> web.Response:
    for one in mock(request).keys:
        if one["id"] == request.match_info["id"]:
            one["revoked_at"] = time.time()
    return web.json_response({})


@routes.get(_PREFIX + "ui/api/keys/{id}/usage")
async def usage(_: web.Request) -> web.Response:
    items = [
        {
            "model": one["name"],
            "requests": 812,
            "tokens_in": 1_204_000,
            "tokens_out": 80_211,
            "cost": "4.21",
        }
        for one in data.MODELS
    ]
    return web.json_response({"items": items})


@routes.get(_PREFIX + "ui/api/routes")
async def routed(_: web.Request) -> web.Response:
    return web.json_response({"routes": data.routes()})


@routes.get(_PREFIX + "ui/{name:.*}")
async def static(request: web.Request) -> web.Response:
    found = static_files().get(request.match_info["name"] or "index.html")
    if found is None:
        raise web.HTTPNotFound
    headers = {**FILE_HEADERS, "content-type": found.mime, "etag": f'"{found.etag}"'}
    return web.Response(body=found.plain, headers=headers)


def application(made: Mock) -> web.Application:
    """The mock as an aiohttp application."""
    app = web.Application(middlewares=[guarded], client_max_size=2**28)
    app[MOCK] = made
    app.add_routes(routes)
    return app


if __name__ == "__main__":
    static_files.cache_clear()
    web.run_app(
        application(Mock()), host="127.0.0.1", port=int(sys.argv[1]) if sys.argv[1:] else 8425
    )
