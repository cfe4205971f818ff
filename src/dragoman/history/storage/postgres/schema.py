"""The tables of the PostgreSQL backend, as numbered migrations; each is applied once.

Every append updates its session's row. The row has free space next to it (`fillfactor`), and no
column that changes is indexed, so the update stays on its page and touches no index (HOT).

There are no foreign keys: rows are only written while the row of their session is locked, and each
append would pay for another check. Branches are stored in that row too, as `{number, parent, at}`
each: an append that has waited for the lock sees the current version of that row only.

Names may be too long for an index, so only their prefixes are indexed (`BEGINNING` characters).

The table of sessions is called `heads` since migration 2, which goes with version 2 of the stored
form: a program of version 1 that is connected does not find it, and can do no harm.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman.errors import StoreError

if TYPE_CHECKING:
    from dragoman.history.storage.postgres.link import Link

BEGINNING = 256
_OLDEST = 13  # has pg_xact_status, which tells whether an interrupted commit succeeded
MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
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
    ),
    (
        "ALTER TABLE our.sessions RENAME TO heads",
        "ALTER TABLE our.heads ADD windows text, ADD chain text, ADD seal text",
        "ALTER TABLE our.messages ADD checksum text, ADD chain text",
    ),
)

_DONE = "SELECT coalesce(max(number), 0) FROM our.dragoman_migrations"
_TABLE = """
CREATE TABLE IF NOT EXISTS our.dragoman_migrations (
    number integer PRIMARY KEY,
    applied_at timestamptz NOT NULL DEFAULT now()
)
"""


async def is_current(link: Link) -> bool:
    """Whether all migrations have been applied."""
    return await applied(link) == len(MIGRATIONS)


async def applied(link: Link) -> int:
    """The number of applied migrations; raises if there are more than this version knows."""
    if link.server < _OLDEST:
        msg = f"the store {link.name} runs PostgreSQL {link.server}; {_OLDEST} or newer is required"
        raise StoreError(msg)
    [(table,)] = await link.fetch("SELECT to_regclass('our.dragoman_migrations')::text")
    done = 0 if table is None else await _done(link)
    if done > len(MIGRATIONS):
        msg = (
            f"the store {link.name} has schema version {done}, but this version of dragoman"
            f" supports only {len(MIGRATIONS)}: it was written by a newer dragoman, which is"
            " needed to read it"
        )
        raise StoreError(msg)
    return done


async def migrate(link: Link) -> None:
    """Applies the missing migrations; safe if many processes start at once."""
    await link.fetch(
        "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (f"dragoman {link.schema}",)
    )
    if await is_current(link):
        return  # another process was faster
    [(there,)] = await link.fetch("SELECT to_regnamespace(%s)::text", (link.schema,))
    if there is None:  # an existing one may be shared, without permission to create it
        await link.run(f'CREATE SCHEMA "{link.schema}"')
    await link.run(_TABLE)
    done = await _done(link)
    for number, step in enumerate(MIGRATIONS[done:], done + 1):
        for statement in step:
            await link.run(statement)
        await link.run("INSERT INTO our.dragoman_migrations (number) VALUES (%s)", (number,))


async def _done(link: Link) -> int:
    [(done,)] = await link.fetch(_DONE)
    return int(done)
