"""`history keygen` and `rotate`: the keys of encrypted stores."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

import click

from dragoman.cli.exit_codes import FOUND, USAGE, Ending, clean_ending, complain
from dragoman.cli.history.keys import NEEDED, SIZE, write_key
from dragoman.cli.history.stores import Place, counted, store_options, with_store
from dragoman.cli.printing import json_option, print_json, wants_json
from dragoman.cli.spinner import waiting

if TYPE_CHECKING:
    from dragoman.history.storage.protocol import Storage


@click.command()
@click.argument("file", type=click.Path(dir_okay=False))
def keygen(file: str) -> None:
    """Write a new key to FILE, readable only by you.

    An existing file is never overwritten. Keep a copy of the key in a safe place: without it,
    nobody can read the data encrypted with it.
    """
    with clean_ending():
        write_key(file, secrets.token_bytes(SIZE))
        click.echo(f"{file}: new key written; use it with --key-file ID={file}", err=True)


@click.command()
@store_options
@json_option
def rotate(store: Place, *, as_json: bool | None) -> None:
    """Re-encrypt the store with the current key.

    Pass all keys in use and the new one, and name the new one with --current-key. The store stays
    usable for programs that have all the keys. The command can be interrupted and run again. With
    --accept-plain, it encrypts a store that is not encrypted yet.
    """

    async def work(storage: Storage) -> None:
        import msgspec

        from dragoman.cli.history.keyed import KeyedStorage

        if not isinstance(storage, KeyedStorage):
            raise Ending(USAGE, f"there is no key to encrypt with: {NEEDED}")
        with waiting("Encrypting …", after=1.0):
            done = await storage.rotate()
        if wants_json(as_json):
            print_json(msgspec.structs.asdict(done))
        else:
            click.echo(f"{counted(done.sealed, 'record')} re-encrypted", err=True)
        if done.broken:
            what = counted(done.broken, "record")
            complain(f"{what} can't be read, left unchanged; `history verify` shows details")
            raise Ending(FOUND)

    with_store(store, work)
