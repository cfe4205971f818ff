"""The prompt library: the terminal's templates, in the page."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import CliRunner

from dragoman.cli.commands import dragoman as command
from tests.gateway.page.browsing import choose_model, opened, until
from tests.gateway.page.flows import EVERY_WIDTH
from tests.gateway.page.pages import PAGE, TestPage, page_at, url_of
from tests.gateway.page.real import gateway_at

HOSTILE = '<img src=x onerror="window.pwned=1">'
BRIEF = """\
system = "In $language."
prompt = "Sum up for $reader: $input"

[defaults]
language = "English"

[settings]
temperature = 0.5
seed = 7
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the terminal's templates."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("HOME", str(tmp_path))
    folder = tmp_path / "data" / "dragoman" / "templates"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def page(tmp_path: Path) -> Iterator[TestPage]:
    """A gateway that serves this machine only."""
    with page_at(url_of("sqlite", tmp_path)) as made:
        yield made


def refused(page: TestPage, method: str, path: str, **options: Any) -> int:
    """The status of a request that fails."""
    answer = page.ask(method, path, **options)
    assert answer.status_code >= 400, answer.text
    assert set(answer.json()["error"]) == {"message", "kind"}
    return answer.status_code


def test_the_terminal_and_the_page_share_their_prompts(page: TestPage, folder: Path) -> None:
    """Each sees, uses and changes what the other wrote."""
    (folder / "brief.toml").write_text(BRIEF)
    (brief,) = page.read("prompts")["prompts"]
    assert (brief["name"], brief["variables"]) == ("brief", ["reader"])
    filled = page.write(
        "POST", "prompts/brief/fill", {"values": {"reader": "a child"}, "input": "It $rains."}
    )
    assert filled["text"] == "Sum up for a child: It $rains."
    assert filled["system"] == "In English."
    assert (filled["settings"], filled["unused"]) == ({"temperature": 0.5}, ["seed"])
    made = page.write("POST", "prompts/loud", {"prompt": "$input!\n\u2026", "model": "echo:"})
    assert made["is_editable"]
    said = CliRunner().invoke(command, ["ask", "-t", "loud", "Hi"])
    assert said.stdout == "Hi!\n\u2026\n"
    CliRunner().invoke(command, ["ask", "echo:", "--save", "soft", "--system", "Be soft."])
    soft = page.read("prompts/soft")
    assert (soft["system"], soft["model"], soft["is_editable"]) == ("Be soft.", "echo:", True)
    assert page.write("DELETE", f"prompts/soft?version={soft['version']}") == {}
    assert [each["name"] for each in page.read("prompts")["prompts"]] == ["brief", "loud"]


def test_a_change_keeps_defaults_and_settings(page: TestPage, folder: Path) -> None:
    """What the page doesn't show of a file that it changes stays in the file."""
    (folder / "brief.toml").write_text(BRIEF)
    found = page.read("prompts/brief")
    found["system"] = "In good $language."
    page.write("POST", "prompts/brief", found)
    assert (folder / "brief.toml").read_text() == BRIEF.replace("In $l", "In good $l")


KEPT = {
    "a comment": "# mine\nprompt = 'Hi'\n",
    "tools": 'prompt = "Hi"\ntools = ["weather.py"]\n',
    "an address": 'prompt = "Hi"\nbase_url = "http://127.0.0.1:1"\n',
    "a schema": 'prompt = "Hi"\nschema = "name, age int"\n',
    "a text in lines": 'prompt = """\nHi"""\n',
    "a date": 'prompt = "Hi"\n\n[settings]\nseed = 1979-05-27\n',
}


@pytest.mark.parametrize("content", KEPT.values(), ids=list(KEPT))
@pytest.mark.whole
def test_a_file_with_more_than_the_page_shows_is_used_but_not_changed(
    page: TestPage, folder: Path, content: str
) -> None:
    """Comments, tools and the like would be lost: the terminal edits it."""
    (folder / "own.toml").write_text(content)
    found = page.read("prompts/own")
    assert found["is_editable"] is False
    assert refused(page, "POST", "prompts/own", json={**found, "prompt": "New"}) == 409
    assert (folder / "own.toml").read_text() == content
    assert page.write("POST", "prompts/own/fill", {"input": "you"})["text"] == "Hi\n\nyou"


def test_tools_and_addresses_never_come_from_the_page(page: TestPage, folder: Path) -> None:
    """The terminal would run the one and send keys to the other."""
    given = {"prompt": "Hi", "tools": ["evil.py"], "base_url": "http://evil", "schema": "x"}
    page.write("POST", "prompts/plain", given)
    page.write("POST", "prompts/tricky", {"prompt": 'Hi"\ntools = ["evil.py"]\n#', "model": "m"})
    assert (folder / "plain.toml").read_text() == 'prompt = "Hi"\n'
    assert "evil" not in (folder / "tricky.toml").read_text().splitlines()[0]
    assert page.read("prompts/tricky")["is_editable"] is True


def test_nobodys_change_is_overwritten(page: TestPage, folder: Path) -> None:
    """A prompt that is new, changed or deleted meanwhile is a conflict."""
    first = page.write("POST", "prompts/one", {"prompt": "First"})
    assert refused(page, "POST", "prompts/one", json={"prompt": "Other"}) == 409
    page.write("POST", "prompts/one", {**first, "prompt": "Second"})
    assert refused(page, "POST", "prompts/one", json={**first, "prompt": "Third"}) == 409
    assert refused(page, "DELETE", f"prompts/one?version={first['version']}") == 409
    assert page.read("prompts/one")["prompt"] == "Second"
    (folder / "one.toml").unlink()
    assert refused(page, "POST", "prompts/one", json={**first, "prompt": "Third"}) == 409
    assert page.read("prompts")["prompts"] == []


@pytest.mark.parametrize("name", ["..%2fchats", "%2e%2e", "a b", "-x", "x" * 65, "é", "a%00"])
@pytest.mark.whole
def test_a_hostile_name_leaves_the_folder_alone(page: TestPage, folder: Path, name: str) -> None:
    """No path leads out of the folder, and nothing is written."""
    for method, path in (("GET", ""), ("POST", ""), ("DELETE", "?version=x"), ("POST", "/fill")):
        body = {"json": {"prompt": "Hi"}} if method == "POST" else {}
        assert refused(page, method, f"prompts/{name}{path}", **body) in {400, 404, 405}
    assert list(folder.iterdir()) == []


INVALID: tuple[dict[str, Any], ...] = (
    {}, {"prompt": " "}, {"prompt": 1}, {"prompt": "x" * 100_001}, {"prompt": "x", "system": []},
    {"prompt": "x", "model": "a\nb"}, {"prompt": "x", "model": "m" * 257},
)  # fmt: skip


@pytest.mark.parametrize("body", INVALID)
@pytest.mark.whole
def test_what_is_invalid_is_not_written(page: TestPage, folder: Path, body: dict[str, Any]) -> None:
    """The error says which field."""
    assert refused(page, "POST", "prompts/x", json=body) in {400, 413}
    assert list(folder.iterdir()) == []


def test_a_broken_file_is_listed_with_its_problem(page: TestPage, folder: Path) -> None:
    """The others can be used; no text of it is in the message."""
    (folder / "bad.toml").write_text('prompt = "secret words\n')
    (folder / "huge.toml").write_text(f'prompt = "{"x" * 1_000_001}"\n')
    (folder / "fine.toml").write_text('prompt = "Hi"\n')
    bad, fine, huge = page.read("prompts")["prompts"]
    assert "is not TOML" in bad["problem"]
    assert "secret" not in bad["problem"]
    assert "too large" in huge["problem"]
    assert fine["text"] == "Hi"
    assert refused(page, "GET", "prompts/bad") == 400


def test_a_missing_value_is_an_error(page: TestPage, folder: Path) -> None:
    """It names the variable."""
    (folder / "brief.toml").write_text(BRIEF)
    answer = page.ask("POST", "prompts/brief/fill", json={"input": "x"})
    assert answer.status_code == 400
    assert "reader" in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    ("server", "has"),
    [({"host": "0.0.0.0"}, False), ({"prompts": "off"}, False), ({}, True)],  # noqa: S104 - not bound
)
@pytest.mark.whole
def test_the_owners_prompts_are_not_for_other_machines(
    tmp_path: Path, folder: Path, server: dict[str, Any], *, has: bool
) -> None:
    """A gateway that serves others has no library, unless a folder of its own is configured."""
    (folder / "mine.toml").write_text('prompt = "private"\n')
    (tmp_path / "team").mkdir()
    (tmp_path / "team" / "ours.toml").write_text('prompt = "ours"\n')
    for more, names in ((server, ["mine"] if has else None),
                        ({**server, "prompts": str(tmp_path / "team")}, ["ours"])):  # fmt: skip
        with page_at(url_of("sqlite", tmp_path), **more) as page:
            assert page.read("info")["has_prompts"] is (names is not None)
            if names is None:
                assert refused(page, "GET", "prompts") == 409
                assert refused(page, "POST", "prompts/x", json={"prompt": "x"}) == 409
            else:
                assert [each["name"] for each in page.read("prompts")["prompts"]] == names


def test_only_the_pages_users_see_prompts(tmp_path: Path, folder: Path) -> None:
    """A key without admin rights is refused."""
    (folder / "mine.toml").write_text('prompt = "private"\n')
    with gateway_at(tmp_path, has_keys=True) as (page, secret):
        admin = {**PAGE, "authorization": f"Bearer {secret}"}
        key = httpx.post(f"{page.url}/ui/api/keys", json={"name": "app"}, headers=admin).json()
        plain = {**PAGE, "authorization": f"Bearer {key['secret']}"}
        for path in ("prompts", "prompts/mine"):
            assert httpx.get(f"{page.url}/ui/api/{path}", headers=admin).status_code == 200
            answer = httpx.get(f"{page.url}/ui/api/{path}", headers=plain)
            assert answer.status_code == 403
            assert "private" not in answer.text


@pytest.mark.slow
@EVERY_WIDTH
def test_a_prompt_is_found_filled_in_and_sent(
    chromium: Any, tmp_path: Path, folder: Path, screen: dict[str, Any]
) -> None:
    """Its variables are asked for, the message becomes $input, its settings are used."""
    (folder / "brief.toml").write_text(BRIEF)
    (folder / "other.toml").write_text(f'prompt = "{HOSTILE.replace(chr(34), chr(39))}"\n')
    with (
        gateway_at(tmp_path) as (gateway, _),
        opened(chromium, f"{gateway.url}/ui/", **screen) as looking,
    ):
        model = gateway.script("A summary.")
        page = looking.go("", ".composer > textarea")
        choose_model(page, "scripted:")
        page.fill(".composer > textarea", "It rains.")
        page.get_by_role("button", name="Prompts").click()
        dialog = page.get_by_role("dialog")
        dialog.get_by_text("<img src=x").wait_for()
        assert page.evaluate("document.documentElement.scrollWidth") <= page.viewport_size["width"]
        dialog.get_by_label("Search prompts").fill("sum up")
        until(page, "document.querySelectorAll('.prompts li').length === 1")
        page.keyboard.press("Enter")
        dialog.get_by_label("reader").fill("a child")
        page.keyboard.press("Enter")
        until(
            page,
            "document.querySelector('.composer > textarea').value"
            " === 'Sum up for a child: It rains.'",
        )
        page.get_by_text("Not used by the page: seed.").wait_for()
        page.press(".composer > textarea", "Enter")
        page.get_by_text("A summary.").wait_for()
        request = model.requests[0]
        assert request.sampling.temperature == 0.5
        assert getattr(request.system[0], "text", None) == "In English."
        assert page.evaluate("window.pwned") is None


@pytest.mark.slow
@EVERY_WIDTH
def test_a_message_is_saved_as_a_prompt_changed_and_deleted(
    chromium: Any, tmp_path: Path, folder: Path, screen: dict[str, Any]
) -> None:
    """The file is the terminal's; nothing is deleted before the confirmation."""
    with (
        gateway_at(tmp_path) as (gateway, _),
        opened(chromium, f"{gateway.url}/ui/", **screen) as looking,
    ):
        page = looking.go("", ".composer > textarea")
        page.fill(".composer > textarea", "Be brief: $input")
        page.get_by_role("button", name="Prompts").click()
        dialog = page.get_by_role("dialog")
        dialog.get_by_role("button", name="New prompt").click()
        dialog.get_by_label("Name", exact=True).fill("brief")
        dialog.get_by_role("button", name="Save").click()
        dialog.get_by_role("button", name="Open brief").click()
        assert (folder / "brief.toml").read_text() == 'prompt = "Be brief: $input"\n'
        dialog.get_by_label("System prompt").fill(HOSTILE)
        dialog.get_by_role("button", name="Save").click()
        dialog.get_by_role("button", name="Open brief").click()
        assert dialog.get_by_label("System prompt").input_value() == HOSTILE
        assert gateway.read("prompts/brief")["system"] == HOSTILE
        dialog.get_by_role("button", name="Delete …").click()
        dialog.get_by_text("Delete this prompt?").wait_for()
        assert (folder / "brief.toml").exists()
        dialog.get_by_role("button", name="Delete").click()
        dialog.get_by_text("No prompts yet.").wait_for()
        assert list(folder.iterdir()) == []
        assert page.locator("main img, dialog img").count() == 0
