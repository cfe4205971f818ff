"""The page's files: how they are served, how large they are, and what they may not contain."""

from __future__ import annotations

import http.client
import re
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import NamedTuple

import pytest

from dragoman.gateway.page.api import POLICY, static_files
from dragoman.model.invisible import invisible_module
from tests.gateway.running import Serving, routed, running

FIRST_LOAD = 200_000


class Answer(NamedTuple):
    """The response to a raw request."""

    status: int
    headers: dict[str, str]
    body: bytes


@pytest.fixture(scope="module")
def gateway() -> Iterator[Serving]:
    """A gateway with nothing behind it."""
    with running(routed()) as serving:
        yield serving


def fetched(gateway: Serving, path: str, method: str = "GET", **headers: str) -> Answer:
    """Sends a request with an unmodified path and returns the response."""
    connection = http.client.HTTPConnection(gateway.url.removeprefix("http://"), timeout=10)
    connection.putrequest(method, path, skip_accept_encoding=True)
    for name, value in headers.items():
        connection.putheader(name.replace("_", "-"), value)
    connection.endheaders()
    answer = connection.getresponse()
    made = Answer(answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read())
    connection.close()
    return made


def test_page_is_served_under_its_policy(gateway: Serving) -> None:
    """Every header that keeps scripts and other sites out is there."""
    answer = fetched(gateway, "/ui/")
    assert answer.status == 200
    assert answer.headers["content-security-policy"] == POLICY
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert "worker-src 'self';" in POLICY
    assert POLICY.endswith("require-trusted-types-for 'script'; trusted-types dragoman-worker")
    for dangerous in ("unsafe-inline", "unsafe-eval", "*", "http:", "https:"):
        assert dangerous not in POLICY


def test_bare_path_leads_to_the_folder(gateway: Serving) -> None:
    """`/ui` redirects to a relative URL, which works behind any prefix."""
    answer = fetched(gateway, "/ui")
    assert (answer.status, answer.headers["location"]) == (308, "ui/")


def test_files_are_packed_and_revalidated(gateway: Serving) -> None:
    """Files are compressed if the client accepts gzip, and not resent while unchanged."""
    packed = fetched(gateway, "/ui/app.js", accept_encoding="gzip, br")
    assert packed.headers["content-encoding"] == "gzip"
    assert len(packed.body) < len(static_files()["app.js"].plain)
    again = fetched(
        gateway, "/ui/app.js", accept_encoding="gzip", if_none_match=packed.headers["etag"]
    )
    assert (again.status, again.body) == (304, b"")
    plain = fetched(gateway, "/ui/app.js")
    assert plain.body == static_files()["app.js"].plain
    assert plain.headers["etag"] != packed.headers["etag"]


def test_head_has_no_body(gateway: Serving) -> None:
    """HEAD returns the size without a body."""
    answer = fetched(gateway, "/ui/page.css", "HEAD")
    assert answer.body == b""
    assert int(answer.headers["content-length"]) == len(static_files()["page.css"].plain)


@pytest.mark.parametrize(
    "path",
    ["/ui/static.py", "/ui/../page/api.py", "/ui/%2e%2e/static.py", "/ui/..%2fstatic.py",
     "/ui/vendor", "/ui/vendor/", "/ui//app.js", "/ui/app.js%00.css", "/ui/APP.JS",
     "/ui/vendor/../../../../../etc/passwd"],
)  # fmt: skip
def test_only_known_names_are_served(gateway: Serving, path: str) -> None:
    """A path that is not the exact name of a file finds nothing, however it is spelled."""
    assert fetched(gateway, path).status == 404


def test_page_takes_no_other_methods(gateway: Serving) -> None:
    """Methods other than GET and HEAD are rejected."""
    assert fetched(gateway, "/ui/", "POST").status == 405


def test_other_hosts_are_refused_without_keys(gateway: Serving) -> None:
    """DNS rebinding: a foreign host name gets nothing, not even the static files."""
    connection = http.client.HTTPConnection(gateway.url.removeprefix("http://"), timeout=10)
    connection.putrequest("GET", "/ui/", skip_host=True)
    connection.putheader("host", "evil.example")
    connection.endheaders()
    assert connection.getresponse().status == 403
    connection.close()


def imports(name: str, seen: list[str]) -> list[str]:
    """A module and all that it imports at once, in the order of the source."""
    if name not in seen:
        seen.append(name)
        source = static_files()[name].plain.decode()
        for found in re.findall(
            r"""(?:^|;|\n)\s*(?:import|export)[^'"()]*?from\s*['"](\.[^'"]+)['"]""", source
        ):
            parts = [part for part in (PurePosixPath(name).parent / found).parts if part != "."]
            imports("/".join(parts), seen)
    return seen


def test_first_load_is_small_and_preloaded() -> None:
    """The first view needs under 200 KB unpacked, all of it named in the HTML: one round trip."""
    files, html = static_files(), static_files()["index.html"].plain.decode()
    modules = imports("app.js", [])
    assert len(modules) > 15
    assert set(re.findall(r'rel="modulepreload" href="([^"]+)"', html)) == set(modules) - {"app.js"}
    needed = [*modules, "index.html", "page.css", "views.css", "theme.js", "icon.svg"]
    assert sum(len(files[name].plain) for name in needed) < FIRST_LOAD


def test_nothing_comes_from_outside() -> None:
    """No file of ours names another site's resource or writes HTML; nothing is inline."""
    for name, file in static_files().items():
        text = file.plain.decode()
        if name.startswith("vendor/"):
            continue
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|srcdoc",
            text,
        ), name
        assert "dangerouslySetInnerHTML" not in text, name
        assert not re.findall(r"""(?:src|href|url\()\s*=?\s*['"]?https?://""", text), name
    html = static_files()["index.html"].plain.decode()
    assert not re.search(r"<script(?![^>]*\bsrc=)|\son\w+=|\sstyle=|<style", html)


def test_each_vendored_file_has_its_licence() -> None:
    """`LICENSES.md` names every vendored file, its package and its licence."""
    told = static_files()["vendor/LICENSES.md"].plain.decode()
    for name in static_files():
        if name.startswith("vendor/") and not name.endswith(".md"):
            assert (
                f"`{name.removeprefix('vendor/')}" in told
                or f", {name.removeprefix('vendor/')}`" in told
            ), name
    assert told.count("```text") == 6


def test_invisible_characters_are_those_of_the_terminal(gateway: Serving) -> None:
    """The page's table is generated from the one of the model when it is served."""
    served = fetched(gateway, "/ui/invisible.js")
    assert served.body.decode() == invisible_module()
    assert served.headers["content-type"] == "text/javascript; charset=utf-8"
