"""Names of sessions in the `history` commands."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from dragoman import ChatHistory, SessionIdentity
from dragoman.cli.commands import dragoman as command

CHAT = SessionIdentity(agent="chat", chat="2026-11-16-101500-3f2a")
LATER = SessionIdentity(agent="chat", chat="2026-11-17-090000-77ee")
ANA = SessionIdentity(agent="guide", chat="7", user="Ana")
BEN = SessionIdentity(agent="guide", chat="7", user="Ben")
USER = SessionIdentity(user="eve@example.org")


def store(folder: Path, *identities: SessionIdentity) -> str:
    """A store with a session for each identity, whose text is its key."""
    url = f"sqlite:///{folder}/chats.db"
    for identity in identities:
        with ChatHistory.open_sync(identity, url) as history:
            history.add(f"I am {identity.key}")
    return url


def run(url: str, *arguments: str) -> Result:
    """Run a command on the store."""
    return CliRunner().invoke(command, ["history", *arguments, "--store", url])


def shown(url: str, *names: str) -> str:
    """The text of the session with that name."""
    result = run(url, "show", *names)
    assert result.exit_code == 0, result.stderr
    text: str = json.loads(result.stdout)["value"][0]["parts"][0]["text"]
    return text


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("2026-11-16-101500-3f2a", CHAT),
        ("chat/2026-11-16-101500-3f2a", CHAT),
        ("agent=chat chat=2026-11-16-101500-3f2a", CHAT),
        ("agent=chat&chat=2026-11-16-101500-3f2a", CHAT),
        ("2026-11-17", LATER),
        ("chat/2026-11-17", LATER),
        ("guide/7/Ana", ANA),
        ("guide/7/B", BEN),
        ("agent=guide chat=7 user=B", BEN),
        ("eve@", USER),
        ("user=eve@example.org", USER),
        (CHAT.digest, CHAT),
        (ANA.digest[:4], ANA),
        (ANA.digest[:12].upper(), ANA),
    ],
)
def test_a_session_is_found_by_name_prefix_or_digest(
    tmp_path: Path, name: str, meant: SessionIdentity
) -> None:
    """Its full name, the beginning of it, or digits of its digest."""
    url = store(tmp_path, CHAT, LATER, ANA, BEN, USER)
    assert shown(url, name) == f"I am {meant.key}"


def test_the_name_in_the_banner_works(tmp_path: Path) -> None:
    """The chat's name, as printed after 'stored as'."""
    url = f"sqlite:///{tmp_path}/chats.db"
    arguments = ["chat", "echo:", "--store", url, "--session", "My trip: Mostar"]
    assert CliRunner().invoke(command, arguments, input="Hello\n").exit_code == 0
    assert shown(url, "My trip: Mostar") == "Hello"
    assert shown(url, "My trip") == "Hello"


@pytest.mark.parametrize("name", ["2026", "2026-11-1", "guide/7", "7"])
def test_an_ambiguous_name_lists_the_sessions(tmp_path: Path, name: str) -> None:
    """It says what to enter instead; nothing is shown or changed."""
    url = store(tmp_path, CHAT, LATER, ANA, BEN)
    both = (ANA, BEN) if "7" in name and "2026" not in name else (CHAT, LATER)
    for arguments in (["show", name], ["delete", name, "--yes"], ["export", name]):
        result = run(url, *arguments)
        assert (result.exit_code, result.stdout) == (2, "")
        assert "2 sessions match; choose one:" in result.stderr
        for identity in both:
            assert identity.digest[:12] in result.stderr
    assert len(json.loads(run(url, "list").stdout)) == 4


def test_many_candidates_are_not_all_listed(tmp_path: Path) -> None:
    """Ten are listed, with how to see the rest."""
    url = store(tmp_path, *(SessionIdentity(chat=f"trip {number}") for number in range(12)))
    result = run(url, "show", "trip")
    assert "more than 10 sessions match" in result.stderr
    assert result.stderr.count("chat=trip") == 10
    assert "history list" in result.stderr


def test_a_full_name_comes_before_a_prefix(tmp_path: Path) -> None:
    """Otherwise some sessions couldn't be named."""
    short, long = SessionIdentity(chat="trip"), SessionIdentity(chat="trip to Mostar")
    url = store(tmp_path, short, long)
    assert shown(url, "trip") == f"I am {short.key}"
    assert shown(url, "trip ") == f"I am {long.key}"


def test_a_digest_prefix_and_a_name_prefix_are_ambiguous(tmp_path: Path) -> None:
    """Neither takes precedence, because a delete could hit the wrong session."""
    named = SessionIdentity(chat=f"{ANA.digest[:5]}-notes")
    url = store(tmp_path, ANA, named)
    assert "2 sessions match" in run(url, "delete", ANA.digest[:5], "--yes").stderr
    assert shown(url, ANA.digest[:12]) == f"I am {ANA.key}"
    assert shown(url, f"{ANA.digest[:5]}-") == f"I am {named.key}"


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("2026-11-16-101500-3f2b", "2026-11-16-101500-3f2a"),
        ("2026-11-16-101500-3F2A", "2026-11-16-101500-3f2a"),
        ("chats/2026-11-16-101500-3f2a", "chat/2026-11-16-101500-3f2a"),
        (f"{CHAT.digest[:11]}g", CHAT.digest[:12]),
    ],
)
def test_a_mistyped_name_gets_a_suggestion(tmp_path: Path, typed: str, meant: str) -> None:
    """The closest name is suggested; nothing is done with it."""
    result = run(store(tmp_path, CHAT, ANA), "show", typed)
    assert (result.exit_code, result.stdout) == (2, "")
    assert f"did you mean {meant}?" in result.stderr
    assert "history list" in result.stderr


@pytest.mark.parametrize("name", ["", "nothing like it", "ffffffff", "../../etc", "x" * 10_000])
def test_an_unknown_name_says_how_to_list_names(tmp_path: Path, name: str) -> None:
    """The error is one line; an empty name isn't a prefix of all."""
    result = run(store(tmp_path, CHAT), "show", name)
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert "`dragoman history list` shows all sessions" in result.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="arguments are not bytes there")
def test_invalid_utf8_is_a_usage_error(tmp_path: Path) -> None:
    """Bytes that aren't text, as a shell passes them on, are not an internal error."""
    result = run(store(tmp_path, CHAT), "show", "\udcff")
    assert result.exit_code == 2


def test_control_characters_in_names_are_escaped(tmp_path: Path) -> None:
    """In lists of candidates and in suggestions."""
    bad = [SessionIdentity(chat=f"trip\x1b]0;owned\x07\n{number}") for number in range(2)]
    url = store(tmp_path, *bad)
    for typed in ("trip", "trip\x1b]0;owned\x07\n3"):
        text = run(url, "show", typed).stderr
        assert "trip" in text
        assert "\x1b" not in text
        assert "\x07" not in text
        assert "owned␇\n" not in text


def test_the_question_before_a_deletion_names_the_session(tmp_path: Path) -> None:
    """A prefix may match another session than intended."""
    from dragoman.cli.history.changing import _told

    store(tmp_path, CHAT)
    assert _told([CHAT, ANA]) == "2 sessions (chat/2026-11-16-101500-3f2a, guide/7/Ana)"
    assert _told([CHAT] * 6) == "6 sessions"
    assert _told([]) == "0 sessions"
