"""Attachments by URL: downloaded and sent by content type."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from dragoman.cli import attachments
from dragoman.cli.commands import dragoman as command
from tests.cli.loopback import Came, Goes, said, serving
from tests.cli.terminals import CTRL_D, dragoman, terminal

PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test runs in its own folder."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)


def run(*arguments: str) -> Result:
    """Run `dragoman ask`."""
    return CliRunner().invoke(command, ["ask", *arguments])


PAGES = {
    "/v1/chat/completions": said("Seen."),
    "/bridge.png": Goes(pieces=[PNG[:9], PNG[9:]]),
    "/note.txt": Goes(pieces=["Grüezi".encode()]),
    "/empty": Goes(pieces=[]),
    "/moved": Goes(pieces=[], status=302, headers={"Location": "/note.txt"}),
    "/around": Goes(pieces=[], status=302, headers={"Location": "/around"}),
    "/inside": Goes(pieces=[], status=302, headers={"Location": "file:///etc/passwd"}),
}


def site(came: Came) -> Goes:
    """A web site with a few files, and a model."""
    return PAGES.get(came.path.partition("?")[0], Goes({"error": "secret"}, 404))


def test_an_image_and_a_text_are_downloaded_and_sent() -> None:
    """By content type; a redirect is followed, and no key is sent to the site."""
    with serving(site) as vendor:
        done = run("openai:gpt-5", "What?", "-a", f"{vendor.url}/bridge.png",
                   "-a", f"{vendor.url}/moved?key=1",
                   "--base-url", f"{vendor.url}/v1", "--dialect", "openai-chat")  # fmt: skip
    assert (done.exit_code, done.stdout) == (0, "Seen.\n"), done.stderr
    *fetched, asked = vendor.came
    assert not any("authorization" in map(str.lower, came.headers) for came in fetched)
    image, text, prompt = asked.json["messages"][0]["content"]
    assert base64.b64decode(image["image_url"]["url"].partition(",")[2]) == PNG
    assert text["text"] == "moved:\n\nGrüezi"
    assert prompt["text"] == "What?"


@pytest.mark.parametrize(
    ("path", "code", "told"),
    [
        ("/gone?key=1", 5, "/gone: the server returned status 404"),
        ("/around", 5, "redirects too many times"),
        ("/inside", 5, "redirects to a less secure URL"),
        ("/empty", 2, "/empty: is empty"),
        ("/bridge.png", 4, "exceeds the limit of 10 bytes"),
    ],
)
def test_a_failed_download_ends_the_command(
    path: str, code: int, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No question is sent; the error hides queries, which may hold keys."""
    monkeypatch.setattr(attachments, "MAX_BYTES", 10)
    with serving(site) as vendor:
        done = run("echo:", "What?", "-a", f"{vendor.url}{path}")
    assert (done.exit_code, done.stdout) == (code, ""), done.stderr
    assert told in done.stderr
    assert "key=1" not in done.stderr


@pytest.mark.parametrize("address", ["http://", "https://[", "http://127.0.0.1:1/x", "http://a b/"])
def test_an_invalid_or_unreachable_url_is_reported(address: str) -> None:
    """It is a usage or connection error, not an internal one."""
    done = run("echo:", "What?", "-a", address)
    assert done.exit_code in {2, 5}, done.stderr


def test_a_chat_attaches_urls_too() -> None:
    """A failed download is one line, and the chat continues."""
    with serving(site) as vendor, terminal(dragoman("chat", "echo:")) as screen:
        screen.until_ready()
        screen.say(f"/attach {vendor.url}/gone")
        screen.until_ready("the server returned status 404")
        screen.say(f"/attach {vendor.url}/note.txt")
        screen.until_ready("will be sent with your next message")
        screen.say("This")
        screen.until_shown("Grüezi")
        screen.until_ready()
        screen.type(CTRL_D)
        assert screen.ended() == 0
