"""`Link`: a borrowed connection that returns rows or raises our own errors."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import psycopg
from psycopg.pq import TransactionStatus

from dragoman.errors import StoreError
from dragoman.history.storage.postgres.failures import READ_ONLY, Late, Lost, Refused, is_lost
from dragoman.history.storage.postgres.settings import Settings, qualified
from dragoman.history.storage.shelf import LostReply

Connection = psycopg.AsyncConnection[tuple[Any, ...]]


class Link:
    """A borrowed connection. Every statement has a timeout, so that nothing hangs forever."""

    __slots__ = ("_connection", "_seconds", "_settings")

    def __init__(self, connection: Connection, settings: Settings, seconds: float) -> None:
        self._connection = connection
        self._settings = settings
        self._seconds = seconds

    @property
    def name(self) -> str:
        """The name of the store."""
        return self._settings.name

    @property
    def schema(self) -> str:
        """The schema that contains the tables."""
        return self._settings.schema

    @property
    def server(self) -> int:
        """The server's major version."""
        return self._connection.info.server_version // 10000

    async def fetch(
        self, template: str, values: Sequence[Any] = (), *, plan: bool | None = None
    ) -> list[tuple[Any, ...]]:
        """The rows of a statement; with `plan=False` it is planned for these values."""
        cursor = await self._executed(template, values, plan=plan)
        return await cursor.fetchall()

    async def run(self, template: str, values: Sequence[Any] = ()) -> int:
        """Runs a statement; returns the number of affected rows."""
        return (await self._executed(template, values)).rowcount

    async def begin(self) -> None:
        """Begins a transaction, with timeouts on the server too."""
        limit = max(1, round(self._seconds * 1000))
        await self._executed(
            "BEGIN ISOLATION LEVEL READ COMMITTED;"
            f"SET LOCAL statement_timeout = {limit};"
            f"SET LOCAL idle_in_transaction_session_timeout = {limit}",
            (),
            plan=False,
            binary=False,  # several statements at once support text results only
        )

    async def _executed(
        self,
        template: str,
        values: Sequence[Any],
        *,
        plan: bool | None = None,
        binary: bool = True,
    ) -> psycopg.AsyncCursor[tuple[Any, ...]]:
        statement = qualified(template, self._settings.schema)
        try:
            async with asyncio.timeout(self._seconds):
                return await self._connection.execute(
                    statement, values or None, prepare=plan, binary=binary
                )
        except TimeoutError:
            raised: StoreError = Late(self.name, self._seconds)
        except psycopg.Error as error:
            raised = self._explained(error)
        except UnicodeError:
            raised = Refused(self.name, "22021")
        raise raised

    def _explained(self, error: psycopg.Error) -> StoreError:
        if self._connection.closed or is_lost(error.sqlstate):
            return Lost(self.name)
        return Refused(self.name, error.sqlstate or "22000", error.diag.constraint_name)

    @property
    def is_idle(self) -> bool:
        """Whether no transaction is in progress."""
        return self._connection.pgconn.transaction_status == TransactionStatus.IDLE

    async def end(self, failed: Exception | None) -> None:
        """Closes the connection before it is returned, if it can't be used again."""
        read_only = isinstance(failed, Refused) and failed.state == READ_ONLY
        if read_only or isinstance(failed, (Lost, LostReply)) or not self.is_idle:
            await self._connection.close()
