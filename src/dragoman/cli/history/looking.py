"""`history show`, `search` and `stats`: the read-only commands."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from dragoman.cli.exit_codes import BROKEN, USAGE, Ending, complain
from dragoman.cli.history.keys import NEEDED, needs_keys
from dragoman.cli.history.naming import session_shown
from dragoman.cli.history.stores import (
    Place,
    counted,
    filter_of,
    filter_options,
    moment,
    names_of,
    store_options,
    with_store,
)
from dragoman.cli.printing import (
    json_option,
    print_found,
    print_json,
    print_json_text,
    wants_json,
)
from dragoman.cli.spinner import waiting

if TYPE_CHECKING:
    from dragoman.cli.history.spending import Spent
    from dragoman.history.storage.protocol import Filter, Group, Hit, Session, Storage, Total
    from dragoman.history.stored_session import DamagedMessage, Keeper
    from dragoman.model.collection import Messages
    from dragoman.model.messages import Message

_MAX_REPORTED = 20  # messages reported individually


@click.command()
@click.argument("session", required=False)
@store_options
@filter_options
@click.option("--last", type=click.IntRange(1), help="Only the last N messages.")
@click.option("--branch", type=int, help="Show this branch instead of the active one.")
@click.option("--short", is_flag=True, help="Shorten long texts.")
@click.option("--ids", "form", flag_value="ids", help="List the messages with their ids.")
@click.option("--markdown", "form", flag_value="markdown", help="Print Markdown.")
@click.option("--answer", "form", flag_value="answer", help="Print only the last answer's text.")
@json_option
def show(
    session: str | None, store: Place, last: int | None, branch: int | None, form: str | None, *,
    short: bool, as_json: bool | None, **names: str | None,
) -> None:  # fmt: skip
    """Show a conversation; without a SESSION, the most recent one.

    The JSON output is a document that `dragoman convert` accepts.
    """

    async def work(storage: Storage) -> None:
        from dragoman.cli.folding import Screen
        from dragoman.history.stored_session import Keeper
        from dragoman.providers.documents.reading import Document

        found = await session_shown(storage, session, names)
        keeper = Keeper(found.identity, storage, store_meta=True)
        keeper.branch = found.active if branch is None else branch
        await _expect_keys(storage, found)
        messages = await _read(keeper, found, last)
        if form in {"markdown", "answer"}:
            _print_text(messages, only_answer=form == "answer")
        elif wants_json(as_json):
            print_json_text(messages.to_json().decode())
        elif form == "ids":
            print_found(("message", "role", "text"), [_line(message) for message in messages])
        else:
            Screen(short=short).show(Document("canonical", messages), 1)
        await _tell(storage, found, list(keeper.damaged.values()))

    with_store(store, work)


def _print_text(messages: Messages, *, only_answer: bool) -> None:
    """Print Markdown, or the last answer; with control characters made visible on a terminal."""
    from dragoman.cli.screen import harmless
    from dragoman.interop.markdown import markdown
    from dragoman.model.roles import Role

    text = markdown(messages)
    if only_answer:
        told = [each.text for each in messages if each.role is Role.ASSISTANT and each.text]
        if not told:
            raise Ending(USAGE, "the conversation contains no answer")
        text = told[-1] if told[-1].endswith("\n") else f"{told[-1]}\n"
    click.echo(harmless(text) if sys.stdout.isatty() else text, nl=False)


async def _read(keeper: Keeper, session: Session, last: int | None) -> Messages:
    """The readable messages; if there are none, the reasons are reported."""
    from dragoman.errors import ConfigError, Corrupt
    from dragoman.model.collection import Messages

    try:
        if last is None:
            return await keeper.stored(session)
        return Messages.wrapping(await keeper.tail(last))
    except (ConfigError, Corrupt):
        if not keeper.damaged:
            raise
        return Messages()


async def _expect_keys(storage: Storage, session: Session) -> None:
    """Exit if the keys of an encrypted message are missing, naming the ones to pass."""
    from dragoman.cli.history.keyed import KeyedStorage
    from dragoman.history.records import is_sealed

    if isinstance(storage, KeyedStorage):
        return
    for row in await storage.rows(session.identity, limit=1):
        if is_sealed(row.body):
            raise Ending(USAGE, f"the conversation can't be read: {needs_keys(row.body)}")


async def _tell(storage: Storage, session: Session, damaged: list[DamagedMessage]) -> None:
    """Report the unreadable messages: only the first ones, since a store may have many."""
    from dragoman.cli.history.keyed import NOT_ENCRYPTED, is_plain_beneath

    for each in damaged[:_MAX_REPORTED]:
        is_plain = await is_plain_beneath(storage, session.identity, each.id)
        reason = NOT_ENCRYPTED if is_plain else each.reason
        complain(f"message {each.seq} is not shown: {reason}")
    if len(damaged) > _MAX_REPORTED:
        complain(f"and {len(damaged) - _MAX_REPORTED:,} more are not shown")
    if damaged:
        raise Ending(BROKEN)


def _line(message: Message) -> tuple[str, str, str]:
    return message.id, message.role.value, message.preview(80)


@click.command()
@click.argument("words", nargs=-1, required=True)
@store_options
@filter_options
@click.option("--limit", type=click.IntRange(1), default=50, show_default=True,
              help="Maximum number of results.")  # fmt: skip
@json_option
def search(
    words: tuple[str, ...], store: Place, limit: int, *, as_json: bool | None,
    **names: str | None,
) -> None:  # fmt: skip
    """Find messages that contain all WORDS, most recent first.

    An encrypted store has no index: with its keys, every message is read.
    """

    async def work(storage: Storage) -> None:
        with waiting("Searching …", after=1.0):
            hits = await _found(storage, " ".join(words), filter_of(names), limit)
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


async def _found(storage: Storage, text: str, which: Filter, limit: int) -> list[Hit]:
    from dragoman.cli.history.keyed import KeyedStorage
    from dragoman.history.transfer import encrypted_sessions, scanned

    if isinstance(storage, KeyedStorage):
        return await scanned(storage, text, which, limit)
    hits = await storage.search(text, which, limit=limit)
    if hidden := await encrypted_sessions(storage, which):
        complain(f"{counted(hidden, 'session')} could not be searched (encrypted): {NEEDED}")
    return hits


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
@store_options
@filter_options
@click.option("--by", type=click.Choice(["session", "user", "model", "day"]), default="day",
              show_default=True, help="What to group by.")  # fmt: skip
@click.option(
    "--cost",
    is_flag=True,
    help="Also show costs, which requires reading every "
    "message. The usage of answers that report none is estimated.",
)
@json_option
def stats(
    store: Place, by: Group, *, cost: bool, as_json: bool | None, **names: str | None
) -> None:
    """Show token totals by session, user, model or day."""

    async def work(storage: Storage) -> None:
        from dragoman.cli.history.spending import Spent, spent, with_estimates

        which = filter_of(names)
        with waiting("Adding up …", after=1.0):
            totals = await storage.totals(by, which)
            costs = await spent(storage, by, which) if cost else {}
            totals = with_estimates(totals, costs)
        if not totals and (held := await _without_usage(storage, which)):
            click.echo(held if cost else f"{held}; --cost estimates that of answers", err=True)
            if not wants_json(as_json):
                return
        if wants_json(as_json):
            print_json([_total(by, total, costs.get(total.key)) for total in totals])
            return
        rows = [
            (
                _key(by, total), f"{total.messages:,}", f"{total.usage.total_input:,}",
                f"{total.usage.cache_read:,}", f"{total.usage.total_output:,}",
                f"{total.usage.total:,}", *([str(costs.get(total.key, Spent()))] if cost else []),
            )
            for total in totals
        ]  # fmt: skip
        heads = (by, "answers", "in", "cached", "out", "tokens")
        print_found((*heads, "cost") if cost else heads, rows)

    with_store(store, work)


async def _without_usage(storage: Storage, which: Filter) -> str:
    """Why there is nothing to add up although there are messages; empty if there are none."""
    from dragoman.history.transfer import every_row, every_session

    count = 0
    async for session in every_session(storage, which):
        async for _ in every_row(storage, session):
            count += 1
    if not count:
        return ""
    return f"{counted(count, 'message')}, none of them with token usage"


def _key(by: str, total: Total) -> str:
    key = total.key or "unknown"
    return key[:12] if by == "session" else key


def _total(by: str, total: Total, spent: Spent | None) -> dict[str, Any]:
    used = total.usage
    costs: dict[str, Any] = {}
    if spent is not None:
        is_known = spent.unknown < spent.answers
        costs = {"cost": str(spent.cost) if is_known else None, "cost_unknown": spent.unknown,
                 "estimated": spent.estimated}  # fmt: skip
    return {
        by: total.key,
        "answers": total.messages,
        "input": used.input,
        "cache_read": used.cache_read,
        "cache_write": used.cache_write,
        "output": used.output,
        "thinking": used.thinking,
        "total": used.total,
        **costs,
    }
