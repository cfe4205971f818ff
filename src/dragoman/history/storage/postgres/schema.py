"""The tables of the PostgreSQL backend, and the migration from those of November 2026 (version 2).

Every append updates its session's row. The row has free space next to it (`fillfactor`), and no
column that changes is indexed, so the update stays on its page and touches no index (HOT).

There are no foreign keys: rows are only written while the row of their session is locked, and each
append would pay for another check. `last_seq` and `indexed` are for the search index; what counts
is in the document.

Names may be too long for an index, so only their prefixes are indexed (`BEGINNING` characters).

A program of version 2 that is connected does not find the columns of `heads` that it asks for, and
can do no harm.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Sequence
from math import isfinite
from typing import TYPE_CHECKING, Any

from dragoman.errors import StoreError
from dragoman.history.storage import sql
from dragoman.history.storage.earlier_heads import Earlier, migrated
from dragoman.history.storage.protocol import Row
from dragoman.history.storage.shelf import Record
from dragoman.model.usage import Usage

if TYPE_CHECKING:
    from dragoman.history.storage.postgres.pool import Link

# --- values
#
# PostgreSQL's text can't contain NULs or invalid UTF-8.
# Such values are escaped, reversibly; everything else is stored as is, readable in psql.


_BINARY = "base64:"


def text_of(name: str) -> str:
    """An id or model name, without NULs."""
    if "\0" in name or "\\" in name:
        return name.replace("\\", "\\\\").replace("\0", "\\0")
    return name


def name_of(text: str) -> str:
    """The inverse of `text_of`."""
    if "\\" not in text:
        return text
    return "\\".join(part.replace("\\0", "\0") for part in text.split("\\\\"))


def body_text(body: bytes) -> str:
    """A body as text: JSON as is, other bytes in base64."""
    try:
        text = body.decode()
    except UnicodeDecodeError:
        pass
    else:
        if "\0" not in text and not text.startswith(_BINARY):
            return text
    return _BINARY + b64encode(body).decode()


def body_bytes(text: str) -> bytes:
    """The inverse of `body_text`; raises ValueError if it was altered."""
    if text.startswith(_BINARY):
        return b64decode(text.removeprefix(_BINARY), validate=True)
    return text.encode()


TYPES = (
    "bigint", "integer", "text", "double precision", "text", *["bigint"] * 6, "text", "text",
    "text",
)  # fmt: skip
"""The types of the columns of a row."""


def row_columns(row: Row) -> tuple[Any, ...]:
    """The columns of a row, in the order of `sql.ROW_COLUMNS`."""
    model = None if row.model is None else text_of(row.model)
    return (
        row.seq, row.branch, text_of(row.id), row.at, model, *sql.usage_columns(row), row.checksum,
        row.chain, body_text(row.body),
    )  # fmt: skip


def row_of(found: Sequence[Any]) -> Row:
    """A row from the columns of `sql.ROW`; alterations are detectable."""
    # Inlined for speed, as `sql.row_of`.
    seq, branch, id, at, model, used, out, read, write, thought, total, checksum, chain, body = (
        found
    )
    try:
        is_absent = used is out is read is write is thought is total is None
        usage = None if is_absent else Usage(used, out, read, write, thought, total)
        raw = body_bytes(body)
    except (ValueError, TypeError):
        return sql.salvaged_row(seq, branch, name_of(id), body.encode())
    if "\\" in id:
        id = name_of(id)
    if model is not None:
        model = name_of(model)
    if not isfinite(at):
        return sql.salvaged_row(seq, branch, id, raw)
    return Row(id, raw, at, model, usage, seq=seq, branch=branch, checksum=checksum, chain=chain)


def record_of(found: Sequence[Any]) -> Record:
    """A record from the columns of `sql.ROW`; its key is its id as stored."""
    return Record(found[2], row_of(found))


# --- the tables


BEGINNING = 256
_OLDEST = 13
VERSION, EARLIER = 3, 2
_VERSION_2: tuple[str, ...] = (
    """
    CREATE TABLE our.sessions (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        digest text COLLATE "C" NOT NULL CONSTRAINT sessions_by_digest UNIQUE,
        agent text COLLATE "C", chat text COLLATE "C", "user" text COLLATE "C",
        "group" text COLLATE "C", scope text COLLATE "C",
        version bigint NOT NULL,
        last_seq bigint NOT NULL,
        created_at double precision NOT NULL,
        updated_at double precision NOT NULL,
        active integer NOT NULL DEFAULT 0,
        indexed bigint NOT NULL DEFAULT 0,
        forks bigint[] NOT NULL DEFAULT '{}',
        "window" text
    ) WITH (fillfactor = 50)""",
    'CREATE INDEX sessions_by_user ON our.sessions (left("user", 256))',
    "CREATE INDEX sessions_by_chat ON our.sessions (left(chat, 256))",
    'CREATE INDEX sessions_by_group ON our.sessions (left("group", 256))',
    """
    CREATE TABLE our.messages (
        session bigint NOT NULL,
        seq bigint NOT NULL,
        branch integer NOT NULL,
        at double precision NOT NULL,
        id text COLLATE "C" NOT NULL,
        model text COLLATE "C",
        input bigint, output bigint, cache_read bigint, cache_write bigint,
        thinking bigint, reported_total bigint,
        body text NOT NULL,
        PRIMARY KEY (session, branch, seq)
    )""",
    "CREATE UNIQUE INDEX messages_by_id ON our.messages (session, id)",
    """
    CREATE TABLE our.texts (
        session bigint NOT NULL,
        seq bigint NOT NULL,
        branch integer NOT NULL,
        at double precision NOT NULL,
        words text[] COLLATE "C" NOT NULL,
        PRIMARY KEY (session, branch, seq)
    )""",
    "CREATE INDEX texts_by_word ON our.texts USING gin (words)",
    """
    CREATE TABLE our.aside (
        digest text COLLATE "C" NOT NULL,
        "user" text COLLATE "C",
        seq bigint NOT NULL,
        branch integer NOT NULL,
        at double precision NOT NULL,
        id text COLLATE "C" NOT NULL,
        reason text NOT NULL,
        body text NOT NULL
    )""",
    "ALTER TABLE our.sessions RENAME TO heads",
    "ALTER TABLE our.heads ADD windows text, ADD chain text, ADD seal text",
    "ALTER TABLE our.messages ADD checksum text, ADD chain text",
)
_NEW_COLUMNS = """
ALTER TABLE our.heads ADD stamp bigint, ADD at double precision, ADD document bytea"""
_EARLIER = """
SELECT id, digest, agent, chat, "user", "group", scope, version, last_seq, created_at, updated_at,
    active, "window", windows, chain, seal, forks,
    (SELECT count(*) FROM our.messages m WHERE m.session = s.id)
FROM our.heads s WHERE id > %s ORDER BY id LIMIT 1000"""
_FILL = """
UPDATE our.heads s SET stamp = e.stamp, at = e.at, document = e.document
FROM unnest(%s::bigint[], %s::bigint[], %s::double precision[], %s::bytea[])
AS e (id, stamp, at, document) WHERE s.id = e.id"""
_IN_PLACE = (
    """
ALTER TABLE our.heads ALTER stamp SET NOT NULL, ALTER at SET NOT NULL, ALTER document SET NOT NULL,
    DROP version, DROP created_at, DROP updated_at, DROP active, DROP forks, DROP "window",
    DROP windows, DROP chain, DROP seal""",
    "ANALYZE our.heads",
)

_DONE = "SELECT coalesce(max(number), 0) FROM our.dragoman_migrations"
_TABLE = """
CREATE TABLE IF NOT EXISTS our.dragoman_migrations (
    number integer PRIMARY KEY,
    applied_at timestamptz NOT NULL DEFAULT now()
)
"""


_FEED = (
    """
CREATE TABLE IF NOT EXISTS our.feed (
    written xid8 NOT NULL DEFAULT pg_current_xact_id(), digest text COLLATE "C" NOT NULL)""",
    "CREATE INDEX IF NOT EXISTS feed_by_writing ON our.feed (written)",
    """
CREATE OR REPLACE FUNCTION our.fed() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
INSERT INTO our.feed (digest) VALUES (coalesce(new.digest, old.digest)); RETURN NULL; END $$""",
    "DROP TRIGGER IF EXISTS feed ON our.heads",
    """
CREATE TRIGGER feed AFTER INSERT OR DELETE OR UPDATE OF stamp ON our.heads
FOR EACH ROW EXECUTE FUNCTION our.fed()""",
)


async def make_feed(link: Link) -> None:
    """Creates the feed of changes, and the trigger that fills it."""
    [(table,)] = await link.fetch("SELECT to_regclass('our.feed')::text")
    if table is None:
        for statement in _FEED:
            await link.run(statement)


async def applied(link: Link) -> int:
    """The version of the tables, 0 without any; raises if this program does not support it."""
    if link.server < _OLDEST:
        msg = f"the store {link.name} runs PostgreSQL {link.server}; {_OLDEST} or newer is required"
        raise StoreError(msg)
    [(table,)] = await link.fetch("SELECT to_regclass('our.dragoman_migrations')::text")
    done = 0 if table is None else await _done(link)
    if done > VERSION:
        msg = (
            f"the store {link.name} has schema version {done}, but this version of dragoman"
            f" supports only {VERSION}: it was written by a newer dragoman, which is needed to"
            " read it"
        )
        raise StoreError(msg)
    if 0 < done < EARLIER:
        msg = (
            f"the store {link.name} has schema version {done}, from before the first release; this"
            f" version of dragoman reads version {EARLIER} and later. Open it once with the"
            " dragoman of November 2026, or export its sessions with that"
        )
        raise StoreError(msg)
    return done


async def migrate(link: Link) -> None:
    """Creates or migrates the tables; safe if many processes start at once."""
    await link.fetch(
        "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (f"dragoman {link.schema}",)
    )
    if await applied(link) == VERSION:
        return  # another process was faster
    [(there,)] = await link.fetch("SELECT to_regnamespace(%s)::text", (link.schema,))
    if there is None:  # an existing one may be shared, without permission to create it
        await link.run(f'CREATE SCHEMA "{link.schema}"')
    await link.run(_TABLE)
    done = await _done(link)  # what this connection knew of the tables may have been outdated
    if done == VERSION:
        return
    for statement in () if done else _VERSION_2:
        await link.run(statement)
    await _migrate_heads(link)
    for number in range(done + 1, VERSION + 1):
        await link.run("INSERT INTO our.dragoman_migrations (number) VALUES (%s)", (number,))


async def _migrate_heads(link: Link) -> None:
    await link.run("LOCK TABLE our.heads IN ACCESS EXCLUSIVE MODE")
    await link.run(_NEW_COLUMNS)
    after = 0
    while found := await link.fetch(_EARLIER, (after,)):
        made = [(each[0], migrated(_earlier(each[1:]))) for each in found]
        await link.run(
            _FILL,
            (
                [id for id, _ in made],
                [stored.stamp for _, stored in made],
                [stored.at for _, stored in made],
                [stored.document for _, stored in made],
            ),
        )
        after = found[-1][0]
    for statement in _IN_PLACE:
        await link.run(statement)


def _earlier(found: Sequence[Any]) -> Earlier:
    """A session's columns; documents were text."""
    *names, version, last, created, updated, active, window, windows, chain, seal, forks, rows = (
        found
    )
    documents = [_bytes(each) for each in (window, windows)]
    branches = [each for each in forks or () if isinstance(each, list)]
    return Earlier._make(
        (
            *names, version, last, created, updated, active, *documents, chain, _bytes(seal),
            branches, rows,
        )
    )  # fmt: skip


def _bytes(text: str | None) -> bytes | str | None:
    """A document; one that was altered stays text, which shows that."""
    if text is None:
        return None
    try:
        return body_bytes(text)
    except ValueError:
        return text


async def _done(link: Link) -> int:
    [(done,)] = await link.fetch(_DONE)
    return int(done)
