"""`dragoman history`: managing stored conversations."""

from __future__ import annotations

import asyncio
import json
import signal
import sqlite3
from decimal import Decimal
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import click
import pytest
from click.testing import CliRunner, Result

from dragoman import ChatHistory, Message, SessionIdentity, Usage, estimate_tokens
from dragoman.cli.commands import dragoman as command
from dragoman.cli.exit_codes import Ending
from dragoman.cli.history import changing
from dragoman.history import SealedStorage, storage_at
from dragoman.model import Origin, portal
from dragoman.providers import Price

ANA = SessionIdentity(agent="guide", chat="7", user="Ana")
BEN = SessionIdentity(agent="guide", chat="8", user="Ben")


class Shop:
    """A store with two sessions in it."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "chats.db"
        self.url = f"sqlite:///{self.file}"
        with ChatHistory.open_sync(ANA, self.url) as history:
            self.first = history.add("Where is the Old Bridge?")
            history.add(
                Message.assistant(
                    "In Mostar.",
                    usage=Usage(input=10, output=4),
                    origin=Origin(dialect="anthropic", model="claude-x"),
                )
            )
        with ChatHistory.open_sync(BEN, self.url) as history:
            history.add("Is there a bridge in Brčko?")

    def run(self, name: str, *arguments: str, url: str | None = None, stdin: str = "") -> Result:
        """Run a command on it."""
        options = ("history", name, *arguments, "--store", url or self.url)
        return CliRunner().invoke(command, options, input=stdin)

    def json(self, name: str, *arguments: str) -> Any:
        """The JSON output of a command."""
        result = self.run(name, *arguments)
        assert result.exit_code == 0, result.stderr
        return json.loads(result.stdout)


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    """A store with two sessions in it."""
    return Shop(tmp_path)


def test_sessions_are_listed_the_latest_first(shop: Shop) -> None:
    """The list has names and sizes, as JSON and as a table."""
    listed = shop.json("list")
    assert [each["identity"]["user"] for each in listed] == ["Ben", "Ana"]
    assert listed[1]["session"] == ANA.digest
    assert (listed[1]["messages"], listed[1]["branches"]) == (2, 1)
    assert [each["identity"]["user"] for each in shop.json("list", "--user", "Ana")] == ["Ana"]
    assert len(shop.json("list", "--limit", "1")) == 1
    table = shop.run("list", "--table").stdout
    assert ANA.digest[:12] in table
    assert "user=Ana" in table


def test_a_conversation_is_shown_by_a_prefix_of_its_key(shop: Shop) -> None:
    """As text for people, and as a document for programs."""
    text = shop.run("show", ANA.digest[:6], "--table").stdout
    assert "Where is the Old Bridge?" in text
    document = shop.json("show", ANA.digest, "--last", "1")
    assert document["kind"] == "Messages"
    assert len(document["value"]) == 1


def test_a_conversation_is_shown_by_its_names(shop: Shop) -> None:
    """The names must match one session, and can't be combined with a digest."""
    assert len(shop.json("show", "--user", "Ana")["value"]) == 2
    assert "2 sessions match" in shop.run("show", "--agent", "guide").stderr
    assert "no session" in shop.run("show", "--user", "Eve").stderr
    assert shop.run("show", ANA.digest, "--user", "Ana").exit_code == 2


def test_the_ids_of_messages_are_shown(shop: Shop) -> None:
    """`fork` takes them."""
    lines = shop.run("show", ANA.digest, "--ids", "--table").stdout.splitlines()
    assert lines[1].split()[:2] == [shop.first.id, "user"]


def test_a_digest_may_be_in_capitals(shop: Shop) -> None:
    """Some tools print digests in capitals."""
    assert len(shop.json("show", ANA.digest.upper())["value"]) == 2


@pytest.mark.parametrize("key", ["abc", "zzzz", "../../etc", "ffffffff"])
def test_a_missing_session_is_reported(shop: Shop, key: str) -> None:
    """Unknown and malformed keys are usage errors."""
    result = shop.run("show", key)
    assert result.exit_code == 2
    assert result.stderr.startswith("dragoman: ")


def test_messages_are_found_by_their_words(shop: Shop) -> None:
    """Search covers all sessions, or selected ones."""
    assert len(shop.json("search", "bridge")) == 2
    found = shop.json("search", "old", "bridge", "--user", "Ana")
    assert [hit["id"] for hit in found] == [shop.first.id]
    assert "Old Bridge" in shop.run("search", "old", "--table").stdout
    assert shop.run("search", "---").exit_code != 0


@pytest.mark.parametrize(
    ("by", "key"), [("session", ANA.digest), ("user", "Ana"), ("model", "claude-x")]
)
def test_usage_is_summed_up(shop: Shop, by: str, key: str) -> None:
    """Sums are grouped by session, user, model or day."""
    assert shop.json("stats", "--by", by) == [
        {
            by: key, "answers": 1, "input": 10, "cache_read": 0, "cache_write": 0, "output": 4,
            "thinking": 0, "total": 14,
        }
    ]  # fmt: skip
    assert "14" in shop.run("stats", "--table").stdout


@pytest.mark.parametrize("form", ["--json", "--table"])
def test_messages_without_usage_are_counted(shop: Shop, form: str) -> None:
    """Where there is nothing to add up, the messages are there all the same."""
    with ChatHistory.open_sync(BEN, shop.url) as history:
        history.extend([Message.user("How are you?"), Message.assistant("Fine.")])
        count = len(history.messages())
    told = shop.run("stats", form, "--user", "Ben")
    assert told.exit_code == 0
    assert told.stdout.strip() == ("[]" if form == "--json" else "")
    assert f"{count} messages, none of them with token usage; --cost estimates" in told.stderr
    assert "messages" not in shop.run("stats", form, "--user", "Nobody").stderr


def test_costs_are_summed(shop: Shop) -> None:
    """Costs come from each answer's usage; answers without a price are counted as unknown."""
    origin = Origin(dialect="anthropic", provider="anthropic", model="claude-haiku-4-5")
    with ChatHistory.open_sync(BEN, shop.url) as history:
        for _ in range(2):
            history.add(Message.assistant("Yes.", usage=Usage(input=10**6), origin=origin))
    (day,) = shop.json("stats", "--cost")
    assert (Decimal(day["cost"]), day["cost_unknown"]) == (Decimal(2), 1)
    by_model = {
        each["model"]: each["cost"] for each in shop.json("stats", "--cost", "--by", "model")
    }
    assert by_model == {"claude-haiku-4-5": day["cost"], "claude-x": None}
    assert "$2.0000 + 1 unknown" in shop.run("stats", "--cost", "--table").stdout


@pytest.mark.parametrize(
    ("answer", "cost"),
    [
        (
            {"type": "message", "id": "m", "role": "assistant", "model": "claude-haiku-4-5",
             "content": [{"type": "text", "text": "Hi"}], "stop_reason": "end_turn",
             "usage": {"input_tokens": 10**6, "output_tokens": 0}},
            Decimal(1),
        ),
        (
            {"id": "c", "object": "chat.completion", "created": 1, "model": "gpt-4.1-mini",
             "choices": [{"index": 0, "finish_reason": "stop",
                          "message": {"role": "assistant", "content": "Hi"}}],
             "usage": {"prompt_tokens": 10**6, "completion_tokens": 0, "total_tokens": 10**6}},
            Decimal("0.4"),
        ),
        (
            {"id": "c", "object": "chat.completion", "created": 1, "model": "our-own",
             "choices": [{"index": 0, "finish_reason": "stop",
                          "message": {"role": "assistant", "content": "Hi"}}],
             "usage": {"prompt_tokens": 10**6, "completion_tokens": 0, "total_tokens": 10**6}},
            None,
        ),
    ],
    ids=["claude", "gpt", "unknown"],
)  # fmt: skip
def test_imported_conversations_have_a_cost(
    shop: Shop, tmp_path: Path, answer: dict[str, Any], cost: Decimal | None
) -> None:
    """They name a model and no provider: the price is that of the model's vendor."""
    file = tmp_path / "answer.json"
    file.write_text(json.dumps(answer), "utf-8")
    assert shop.run("import", str(file)).exit_code == 0
    found = {each["model"]: each for each in shop.json("stats", "--cost", "--by", "model")}
    of_model = found[answer["model"]]
    assert of_model["cost"] == (None if cost is None else str(cost))
    assert of_model["cost_unknown"] == (cost is None)


def test_usage_that_nobody_reported_is_estimated(shop: Shop, tmp_path: Path) -> None:
    """As of ChatGPT's export: with the conversation before an answer, in its branch, as prompt."""
    said = [("a", None, "user", "Where is the Old Bridge?"), ("b", "a", "assistant", "In Mostar."),
            ("c", "b", "user", "And the one of Sighs? " * 40), ("d", "c", "assistant", "Venice."),
            ("e", "b", "user", "Since when?"), ("f", "e", "assistant", "Since 1566.")]  # fmt: skip
    mapping: dict[str, Any] = {
        id: {
            "id": id, "parent": parent, "children": [each[0] for each in said if each[1] == id],
            "message": {"id": id, "author": {"role": role}, "create_time": 1.7e9,
                        "content": {"content_type": "text", "parts": [text]},
                        "metadata": {"model_slug": "gpt-4o"}},
        }
        for id, parent, role, text in said
    }  # fmt: skip
    file = tmp_path / "conversations.json"
    file.write_text(
        json.dumps([{"title": "t", "id": "x", "current_node": "f", "mapping": mapping}])
    )
    assert shop.run("import", str(file)).exit_code == 0
    found = {each["model"]: each for each in shop.json("stats", "--cost", "--by", "model")}
    of_model = found["gpt-4o"]
    assert (of_model["answers"], of_model["estimated"], of_model["cost_unknown"]) == (3, 3, 0)
    long = estimate_tokens(said[2][3])
    assert long < of_model["input"] < 2 * long  # it is before one answer, not before two
    price = Price(Decimal("2.5"), Decimal(10)).cost(Usage(of_model["input"], of_model["output"]))
    assert Decimal(of_model["cost"]) == price
    assert found["claude-x"]["estimated"] == 0
    assert "~$" in shop.run("stats", "--cost", "--by", "model", "--table").stdout


def test_an_export_can_be_imported_into_another_store(shop: Shop, tmp_path: Path) -> None:
    """The copy is equal; a second import is a conflict, is skipped, or replaces the sessions."""
    file, other = tmp_path / "all.jsonl", f"sqlite:///{tmp_path}/other.db"
    assert shop.run("export", "--out", str(file)).exit_code == 0
    assert shop.run("import", str(file), url=other).exit_code == 0
    assert shop.run("export", url=other).stdout.encode() == file.read_bytes()
    assert shop.run("import", str(file), url=other).exit_code == 3
    skipped = shop.run("import", str(file), "--on-conflict", "skip", url=other)
    assert "2 skipped (already there)" in skipped.stderr
    replaced = shop.run("import", "-", "--on-conflict", "replace", url=other,
                        stdin=file.read_text())  # fmt: skip
    assert "2 sessions, 3 messages" in replaced.stderr


def test_an_import_conflict_says_how_to_continue(shop: Shop, tmp_path: Path) -> None:
    """It also says that the sessions before it were imported."""
    (tmp_path / "all.jsonl").write_text(shop.run("export").stdout)
    result = shop.run("import", str(tmp_path / "all.jsonl"))
    assert "--on-conflict skip" in result.stderr
    assert "those before it were imported" in result.stderr


def test_an_export_never_overwrites_its_store(shop: Shop) -> None:
    """A failed export leaves an existing file unchanged."""
    before = shop.file.read_bytes()
    result = shop.run("export", "--out", str(shop.file))
    assert (result.exit_code, shop.file.read_bytes()) == (2, before)
    out = shop.file.with_name("copy.jsonl")
    out.write_text("older")
    assert shop.run("export", "ffffffff", "--out", str(out)).exit_code == 2
    assert out.read_text() == "older"


def test_a_file_of_another_kind_is_reported_briefly(shop: Shop, tmp_path: Path) -> None:
    """The error isn't repeated for each of its lines."""
    (tmp_path / "page.md").write_text("# Not JSON\n" * 1000)
    result = shop.run("import", str(tmp_path / "page.md"))
    assert result.exit_code == 3
    assert "and 980 more problems" in result.stderr
    assert "history export" in result.stderr
    assert len(result.stderr.splitlines()) < 30


def test_one_session_can_be_exported(shop: Shop) -> None:
    """The export has only its lines; a digest can't be combined with names."""
    assert shop.run("export", BEN.digest[:8], "--user", "Ana").exit_code == 2
    lines = shop.run("export", BEN.digest[:8]).stdout.splitlines()
    assert [json.loads(line)["kind"] for line in lines] == ["Session", "Record"]


def test_broken_lines_are_reported_and_the_rest_is_imported(shop: Shop, tmp_path: Path) -> None:
    """They are reported by number, without their content."""
    lines = shop.run("export").stdout.splitlines()
    file = tmp_path / "broken.jsonl"
    file.write_text("\n".join([*lines[:2], '{"secret": 1}', *lines[2:]]))
    result = shop.run("import", str(file), url=f"sqlite:///{tmp_path}/other.db")
    assert result.exit_code == 3
    assert "line 3" in result.stderr
    assert "secret" not in result.stderr
    assert "2 sessions, 3 messages" in result.stderr


def test_a_fork_makes_a_branch(shop: Shop) -> None:
    """The conversation is then shown on the new branch."""
    made = shop.json("fork", ANA.digest[:8], shop.first.id)
    assert (made["branch"], made["forked_at"]) == (1, shop.first.id)
    assert len(shop.json("show", ANA.digest)["value"]) == 1
    assert len(shop.json("show", ANA.digest, "--branch", "0")["value"]) == 2
    assert shop.run("fork", ANA.digest, "msg_unknown").exit_code == 2


def test_branches_are_listed_and_switched(shop: Shop) -> None:
    """A fork by mistake can be undone from the command line."""
    shop.run("fork", ANA.digest, shop.first.id)
    main, forked = shop.json("branches", ANA.digest)
    assert (main["branch"], main["active"], main["forked_at"]) == (0, False, None)
    assert (forked["branch"], forked["active"], forked["forked_at"]) == (1, True, shop.first.id)
    assert shop.first.id in shop.run("branches", ANA.digest, "--table").stdout
    assert shop.run("switch", ANA.digest, "0").exit_code == 0
    assert len(shop.json("show", ANA.digest)["value"]) == 2
    assert shop.run("switch", ANA.digest, "7").exit_code == 2


def test_sessions_are_deleted_by_name_or_by_criteria(shop: Shop) -> None:
    """One of them must be given, and the user is asked first."""
    assert shop.run("delete", "--yes").exit_code == 2
    assert shop.run("delete", ANA.digest[:8]).exit_code == 2
    assert len(shop.json("list")) == 2
    assert shop.run("delete", ANA.digest[:8], "--yes").exit_code == 0
    assert shop.run("delete", "--user", "Ben", "--yes").exit_code == 0
    assert shop.json("list") == []


def test_a_session_named_twice_is_deleted_once(shop: Shop) -> None:
    """It is also counted once."""
    result = shop.run("delete", ANA.digest[:8], ANA.digest, "--yes")
    assert "1 session deleted" in result.stderr


def test_a_prompt_can_be_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C ends it at once, although the event loop would wait for the answer."""

    def ask(_question: str, **_options: object) -> bool:
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            raise click.Abort from None
        return True

    async def work() -> None:
        changing._answer("Really?")

    monkeypatch.setattr(click, "confirm", ask)
    with pytest.raises(Ending, match="nothing was changed") as ended:
        asyncio.run(work())
    assert ended.value.code == 130


def test_a_user_can_be_forgotten(shop: Shop) -> None:
    """The report names the places that can't be erased from here."""
    erased = shop.json("forget", "Ana", "--yes")
    assert (erased["sessions"], erased["messages"]) == (1, 2)
    assert erased["may_remain_in"]
    assert b"Old Bridge" not in shop.file.read_bytes()


def test_damage_is_found_and_moved_aside(shop: Shop) -> None:
    """The damaged record is kept elsewhere."""
    assert shop.json("verify") == []
    assert "no problems" in shop.run("verify", "--table").stderr
    with sqlite3.connect(shop.file) as connection:
        connection.execute("UPDATE messages SET body = x'00ff' WHERE id = ?", (shop.first.id,))
    connection.close()
    found = shop.run("verify")
    assert found.exit_code == 1
    assert json.loads(found.stdout)[0]["seq"] == 1
    assert "was altered" in shop.run("verify", "--table").stdout
    assert "message 1 is not shown" in shop.run("show", ANA.digest).stderr
    assert "1 record moved aside" in shop.run("repair").stderr
    assert shop.json("verify") == []
    assert len(shop.json("show", ANA.digest)["value"]) == 1
    with sqlite3.connect(shop.file) as connection:
        assert connection.execute("SELECT seq, body FROM aside").fetchall() == [(1, b"\x00\xff")]
    connection.close()


def test_encrypted_records_are_not_treated_as_damage(tmp_path: Path) -> None:
    """A repair without keys moves nothing."""
    url = f"sqlite:///{tmp_path}/sealed.db"
    sealed = SealedStorage(storage_at(url, blocking=True)[0], keys={"a": bytes(32)}, current="a")
    with ChatHistory.open_sync(ANA, sealed) as history:
        history.extend([f"secret {number}" for number in range(30)])
        for name in ("verify", "repair"):
            result = CliRunner().invoke(command, ["history", name, "--store", url])
            assert (result.exit_code, json.loads(result.stdout)) == (0, [])
            assert "30 records can't be checked (encrypted)" in result.stderr
        assert len(history) == 30
        shown = CliRunner().invoke(command, ["history", "show", ANA.digest, "--store", url])
        assert shown.exit_code == 2
        assert "encrypted" in shown.stderr
    portal.run_inline(sealed.close())


def test_a_missing_store_is_not_created(tmp_path: Path) -> None:
    """A mistyped name neither looks like an empty store nor becomes one."""
    for url in (f"sqlite:///{tmp_path}/typo.db", f"file://{tmp_path}/typo"):
        for arguments in (["list"], ["stats"], ["verify"], ["forget", "ana", "--yes"], ["export"]):
            result = CliRunner().invoke(command, ["history", *arguments, "--store", url])
            assert result.exit_code == 4
            assert "there is no store" in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_an_empty_result_is_mentioned(shop: Shop) -> None:
    """A sentence replaces an empty table."""
    result = shop.run("search", "unheard", "--table")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "nothing found\n")


@pytest.mark.parametrize(
    ("url", "code"),
    [
        ("sqlite:///x.db?durability=yes", 2),
        ("sqlite:///x.db?durabilty=power", 2),
        ("redis://127.0.0.1:1/0", 4),
        ("postgresql://127.0.0.1:1/test", 4),
        ("postgresql://127.0.0.1:1/test?prepared=maybe", 2),
    ],
)
def test_the_exit_code_tells_a_usage_error_from_an_unavailable_store(url: str, code: int) -> None:
    """The one must be corrected, the other may be retried."""
    for package in ("redis", "psycopg"):
        pytest.importorskip(package)
    result = CliRunner().invoke(command, ["history", "list", "--store", url])
    assert (result.exit_code, result.stderr.count("\n")) == (code, 1)


def test_a_store_that_can_t_be_opened_is_reported(tmp_path: Path) -> None:
    """The error is one line."""
    for url in ("nonsense", "sqlite:///"):
        result = CliRunner().invoke(command, ["history", "list", "--store", url])
        assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    (tmp_path / "x.db").write_bytes(b"not a database, but long enough to be taken for one" * 9)
    result = CliRunner().invoke(
        command, ["history", "list", "--store", f"sqlite:///{tmp_path}/x.db"]
    )
    assert result.exit_code == 3
    assert "damaged" in result.stderr


def test_verify_reports_what_a_history_calls_damaged(shop: Shop) -> None:
    """By session and message; people see it under the session's name."""
    with sqlite3.connect(shop.file) as connection:
        connection.execute("UPDATE messages SET body = x'00ff' WHERE seq = 1")
    connection.close()
    result = shop.run("verify")
    found = [each for each in json.loads(result.stdout) if each["seq"] is not None]
    damaged: set[tuple[str, int]] = set()
    for identity in (ANA, BEN):
        with ChatHistory.open_sync(identity, shop.url) as history:
            history.messages()
            damaged |= {(identity.digest, each.seq) for each in history.damaged}
    assert {(each["session"], each["seq"]) for each in found} == damaged
    assert [each["identity"]["user"] for each in found if each["session"] == ANA.digest] == ["Ana"]
    table = shop.run("verify", "--table")
    assert table.exit_code == result.exit_code == 1
    lines = table.stdout.splitlines()
    at = lines.index(f"{ANA.digest[:12]}  guide/7/Ana")
    assert lines[at + 1].startswith("  message 1: the stored message was altered")
    assert "in 2 sessions" in table.stderr


# --- conversations from other sources


def imported(shop: Shop, folder: Path, name: str, text: str, *options: str) -> Result:
    """Import a file into a new store."""
    (folder / name).write_text(text)
    return shop.run("import", str(folder / name), *options, url=f"sqlite:///{folder}/other.db")


def listed(shop: Shop, folder: Path) -> list[Any]:
    """The sessions in the other store, sorted by name."""
    result = shop.run("list", "--json", url=f"sqlite:///{folder}/other.db")
    return sorted(json.loads(result.stdout), key=lambda each: str(each["identity"]))


CHATGPT = {
    "title": "Bridges",
    "conversation_id": "c-1",
    "current_node": "b",
    "mapping": {
        name: {
            "parent": parent,
            "message": {
                "author": {"role": "user"},
                "content": {"content_type": "text", "parts": [name]},
                "create_time": 1_700_000_000,
            },
        }
        for name, parent in (("a", None), ("b", "a"), ("typo", "a"))
    },
}


def test_every_document_convert_reads_can_be_imported(shop: Shop, tmp_path: Path) -> None:
    """Each document becomes a session named after its file, with its system prompt as a message."""
    lines = [
        {
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "Hi"},
            ]
        },
        {"contents": [{"role": "user", "parts": [{"text": "Hallo"}]}]},
    ]
    text = "\n".join(map(json.dumps, lines))
    result = imported(shop, tmp_path, "talks.jsonl", text, "--user", "Ana")
    assert result.exit_code == 0, result.stderr
    assert "2 sessions, 3 messages" in result.stderr
    first, second = listed(shop, tmp_path)
    assert first["identity"] == {"agent": "import", "chat": "talks-1", "user": "Ana"}
    assert (first["first_line"], first["messages"]) == ("Hi", 2)
    assert second["first_line"] == "Hallo"


def test_a_chatgpt_export_keeps_titles_times_and_branches(shop: Shop, tmp_path: Path) -> None:
    """The session is named by its id, so that a second import finds it."""
    result = imported(shop, tmp_path, "conversations.json", json.dumps([CHATGPT]))
    assert result.exit_code == 0, result.stderr
    (found,) = listed(shop, tmp_path)
    assert found["identity"] == {"agent": "chatgpt", "chat": "c-1"}
    assert (found["title"], found["messages"], found["branches"]) == ("Bridges", 3, 2)
    assert found["updated_at"] == 1_700_000_000
    again = imported(shop, tmp_path, "conversations.json", json.dumps([CHATGPT]))
    assert again.exit_code == 3
    skipped = imported(
        shop, tmp_path, "conversations.json", json.dumps([CHATGPT]), "--on-conflict", "skip"
    )
    assert "1 skipped" in skipped.stderr


def test_unreadable_conversations_are_reported_and_the_rest_is_imported(
    shop: Shop, tmp_path: Path
) -> None:
    """They are reported by line without content; so are settings, which aren't stored."""
    lines = [
        '{"secret": 1}',
        '{"messages": [{"role": "user", "content": "Hi"}], "temperature": 0.5}',
        '{"messages": []}',
    ]
    result = imported(shop, tmp_path, "talks.jsonl", "\n".join(lines))
    assert result.exit_code == 3
    assert "line 1: " in result.stderr
    assert "line 3: it contains no messages" in result.stderr
    assert "sampling: " in result.stderr
    assert "secret" not in result.stderr
    assert "1 session, 1 message" in result.stderr


def test_an_archive_has_to_be_unpacked(shop: Shop, tmp_path: Path) -> None:
    """ChatGPT and Claude deliver exports as ZIP archives; the error says what to do."""
    with ZipFile(tmp_path / "export.zip", "w") as archive:
        archive.writestr("conversations.json", json.dumps([CHATGPT]))
    result = shop.run("import", str(tmp_path / "export.zip"))
    assert result.exit_code == 3
    assert "is a ZIP archive; unpack it" in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_a_named_format_is_required(shop: Shop, tmp_path: Path) -> None:
    """Another format is an error, and an unknown name a usage error."""
    wrong = imported(shop, tmp_path, "talks.json", '{"messages": []}', "--from", "chatgpt")
    assert wrong.exit_code == 3
    assert "not a conversation in the form of chatgpt" in wrong.stderr
    assert imported(shop, tmp_path, "talks.json", "{}", "--from", "gpt").exit_code == 2


def test_files_of_the_same_name_stay_separate(shop: Shop, tmp_path: Path) -> None:
    """Their folders become part of the sessions' names."""
    files = [tmp_path / "a" / "talk.json", tmp_path / "b" / "talk.json"]
    for file in files:
        file.parent.mkdir()
        file.write_text('[{"role": "user", "content": "Hi"}]')
    result = shop.run("import", *map(str, files), url=f"sqlite:///{tmp_path}/other.db")
    assert result.exit_code == 0, result.stderr
    assert len(listed(shop, tmp_path)) == 2


def test_an_export_can_be_converted_and_shown(shop: Shop, tmp_path: Path) -> None:
    """Each session is one document, however small the chunks."""
    shop.json("list")
    file = tmp_path / "all.jsonl"
    assert shop.run("export", "--out", str(file)).exit_code == 0
    run = CliRunner().invoke
    made = run(command, ["convert", str(file), "--to", "openai-chat"])
    assert made.exit_code == 0, made.stderr
    texts = {
        tuple(message["content"] for message in json.loads(line)["messages"])
        for line in made.stdout.splitlines()
    }
    assert texts == {
        ("Where is the Old Bridge?", "In Mostar."),
        ("Is there a bridge in Brčko?",),
    }
    shown = run(command, ["show", "-"], input=file.read_bytes())
    assert shown.exit_code == 0, shown.stderr
    assert "In Mostar." in shown.stdout
    assert run(command, ["check", str(file), "--to", "anthropic"]).exit_code == 0


def test_other_branches_of_an_export_are_a_loss(shop: Shop, tmp_path: Path) -> None:
    """The active branch is converted, and the messages of other branches are counted."""
    assert shop.run("fork", ANA.digest[:8], shop.first.id).exit_code == 0
    text = shop.run("export", ANA.digest[:8]).stdout
    losses = tmp_path / "losses.jsonl"
    options = ["convert", "-", "--to", "anthropic", "--losses", str(losses)]
    made = CliRunner().invoke(command, options, input=text)
    assert made.exit_code == 0, made.stderr
    found = [json.loads(line) for line in losses.read_text().splitlines()]
    loss = next(each for each in found if each["kind"] == "loss")
    assert (loss["path"], loss["rule"]) == ("messages", None)
    assert "1 message is on other branches" in loss["reason"]
    repair = next(each for each in found if each["kind"] == "repair")
    assert repair["path"] == "sampling.max_tokens"
    assert repair["rule"].startswith("W")


@pytest.mark.parametrize("cut", ["first", "middle"])
def test_an_incomplete_export_is_rejected(shop: Shop, cut: str) -> None:
    """It isn't converted as if it were complete."""
    lines = shop.run("export", ANA.digest[:8]).stdout.splitlines()
    del lines[0 if cut == "first" else 1]
    options = ["convert", "-", "--to", "openai-chat"]
    made = CliRunner().invoke(command, options, input="\n".join(lines))
    assert made.exit_code == 3
    assert made.stdout == ""
