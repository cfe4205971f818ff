"""`history list`, `show`, `search`, `stats`: nothing is changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from dragoman.cli.endings import BROKEN, Ending, complain
from dragoman.cli.history.stores import (
    filter_of,
    filter_options,
    moment,
    names_of,
    session_meant,
    sessions_of,
    shown,
    store_option,
    with_store,
)
from dragoman.cli.printing import json_option, print_found, print_json, wants_json

if TYPE_CHECKING:
    from dragoman.history.keeping import Damaged
    from dragoman.history.storage.protocol import Hit, Session, Storage, Total
    from dragoman.model.messages import Message

_MOST = 20  # messages that are told of one by one


@click.command("list")
@store_option
@filter_options
@click.option("--limit", type=click.IntRange(1), help="No more than this many.")
@json_option
def list_sessions(
    store: str | None, limit: int | None, *, as_json: bool | None, **names: str | None
) -> None:
    """List sessions, the last written to first."""

    async def work(storage: Storage) -> None:
        found = (await sessions_of(storage, filter_of(names)))[:limit]
        counts = [await storage.count(session.identity) for session in found]
        if wants_json(as_json):
            print_json([_described(s, n) for s, n in zip(found, counts, strict=True)])
            return
        rows = [
            (s.identity.digest[:12], str(n), moment(s.updated_at), shown(s.identity))
            for s, n in zip(found, counts, strict=True)
        ]
        print_found(("session", "messages", "last written (UTC)", "names"), rows)

    with_store(store, work)


def _described(session: Session, messages: int) -> dict[str, Any]:
    return {
        "session": session.identity.digest,
        "identity": names_of(session.identity),
        "messages": messages,
        "version": session.version,
        "branches": len(session.forks) + 1,
        "created_at": session.created_at,
        "updated_at": session.updated_at,
    }


@click.command()
@click.argument("session", required=False)
@store_option
@filter_options
@click.option("--last", type=click.IntRange(1), help="Only the last so many messages.")
@click.option("--branch", type=int, help="Another branch than the active one.")
@click.option("--short", is_flag=True, help="Cut long texts.")
@click.option("--ids", is_flag=True, help="A line for each message, with its id.")
@json_option
def show(
    session: str | None, store: str | None, last: int | None, branch: int | None, *, short: bool,
    ids: bool, as_json: bool | None, **names: str | None,
) -> None:  # fmt: skip
    """Show a conversation.

    Named by the first digits of its digest, or by names that only it has. As JSON it is a
    document that `dragoman convert` reads.
    """

    async def work(storage: Storage) -> None:
        from dragoman.cli.kinds import Document
        from dragoman.cli.typesetting import Screen
        from dragoman.history.keeping import Keeper
        from dragoman.model.collection import Messages

        found = await session_meant(storage, session, names)
        keeper = Keeper(found.identity, storage, store_meta=True)
        keeper.branch = found.active if branch is None else branch
        messages = (
            await keeper.stored(found)
            if last is None
            else Messages.wrapping(await keeper.tail(last))
        )
        if wants_json(as_json):
            click.echo(messages.to_json())
        elif ids:
            print_found(("message", "role", "text"), [_line(message) for message in messages])
        else:
            Screen(short=short).show(Document("canonical", messages), 1)
        _tell(list(keeper.damaged.values()))

    with_store(store, work)


def _tell(damaged: list[Damaged]) -> None:
    """What could not be shown; there may be a lot of it, where a store is encrypted."""
    for each in damaged[:_MOST]:
        complain(f"message {each.seq} was left out: {each.reason}")
    if len(damaged) > _MOST:
        complain(f"and {len(damaged) - _MOST:,} more were left out")
    if damaged:
        raise Ending(BROKEN)


def _line(message: Message) -> tuple[str, str, str]:
    return message.id, message.role.value, message.preview(80)


@click.command()
@click.argument("words", nargs=-1, required=True)
@store_option
@filter_options
@click.option("--limit", type=click.IntRange(1), default=50, show_default=True,
              help="No more than this many.")  # fmt: skip
@json_option
def search(
    words: tuple[str, ...], store: str | None, limit: int, *, as_json: bool | None,
    **names: str | None,
) -> None:  # fmt: skip
    """Find the messages that hold all the WORDS, the latest first."""

    async def work(storage: Storage) -> None:
        hits = await storage.search(" ".join(words), filter_of(names), limit=limit)
        if wants_json(as_json):
            print_json([_hit(hit) for hit in hits])
            return
        rows = [
            (
                hit.identity.digest[:12],
                moment(hit.row.at),
                _message(hit).role.value,
                _message(hit).preview(80),
            )
            for hit in hits
        ]
        print_found(("session", "stored (UTC)", "role", "text"), rows)

    with_store(store, work)


def _hit(hit: Hit) -> dict[str, Any]:
    return {
        "session": hit.identity.digest,
        "identity": names_of(hit.identity),
        "id": hit.row.id,
        "seq": hit.row.seq,
        "at": hit.row.at,
        "message": _message(hit).to_dict(),
    }


def _message(hit: Hit) -> Message:
    from dragoman.history.records import message_of

    return message_of(hit.row.body)


@click.command()
@store_option
@filter_options
@click.option("--by", type=click.Choice(["session", "user", "model", "day"]), default="day",
              show_default=True, help="What to sum up by.")  # fmt: skip
@json_option
def stats(store: str | None, by: str, *, as_json: bool | None, **names: str | None) -> None:
    """Sum up what models used: tokens by session, user, model or day."""

    async def work(storage: Storage) -> None:
        totals = await storage.totals(by, filter_of(names))  # type: ignore[arg-type]  # click checked it
        if wants_json(as_json):
            print_json([_total(by, total) for total in totals])
            return
        rows = [
            (
                _key(by, total), f"{total.messages:,}", f"{total.usage.total_input:,}",
                f"{total.usage.cache_read:,}", f"{total.usage.total_output:,}",
                f"{total.usage.total:,}",
            )
            for total in totals
        ]  # fmt: skip
        print_found((by, "answers", "in", "of it cached", "out", "tokens"), rows)

    with_store(store, work)


def _key(by: str, total: Total) -> str:
    key = total.key or "unknown"
    return key[:12] if by == "session" else key


def _total(by: str, total: Total) -> dict[str, Any]:
    used = total.usage
    return {
        by: total.key,
        "answers": total.messages,
        "input": used.input,
        "cache_read": used.cache_read,
        "cache_write": used.cache_write,
        "output": used.output,
        "thinking": used.thinking,
        "total": used.total,
    }
