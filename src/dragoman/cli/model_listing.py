"""Lists models: of providers, and on this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dragoman.model.catalogue import ModelInfo
    from dragoman.transport.local.catalogue import Packaged
    from dragoman.transport.protocol import Transport

Row = dict[str, Any]


async def listed(
    name: str, transport: Transport, seconds: float, base_url: str | None = None
) -> tuple[ModelInfo, ...]:
    """The models that a provider lists, with a single attempt."""
    from dragoman.transport.client import Client
    from dragoman.transport.protocol import Timeouts
    from dragoman.transport.retries import Retries

    client = Client(
        name,
        base_url=base_url,
        transport=transport,
        timeouts=Timeouts(connect=seconds, total=seconds),
        retries=Retries(attempts=1),
    )
    return await client.models()


def row_of(provider: str, model: ModelInfo) -> Row:
    """A provider's model; the context window is as reported, or as known for that model."""
    from dragoman.providers.context_windows import context_window

    return {
        "model": f"{provider}:{model.id}",
        "provider": provider,
        "id": model.id,
        "name": model.name,
        "context_window": model.context_window or context_window(model.id),
        "created": model.created,
    }


def local_rows() -> list[Row]:
    """The models on this machine, and those that can be downloaded."""
    from dragoman.transport.local.catalogue import PACKAGED
    from dragoman.transport.local.fetching import kept_at, models_folder

    known = {kept_at(model) for model in PACKAGED.values()}
    rows = [_packaged(model) for model in PACKAGED.values()]
    others = [path for path in sorted(models_folder().glob("*.gguf")) if path not in known]
    return rows + [_local(str(path), size=path.stat().st_size, is_here=True) for path in others]


def _packaged(model: Packaged) -> Row:
    from dragoman.providers.context_windows import context_window
    from dragoman.transport.local.fetching import is_kept

    is_here = is_kept(model)
    size = model.size if is_here else model.wheel_size
    row = _local(model.name, size=size, is_here=is_here)
    return {**row, "context_window": context_window(model.name), "licence": model.licence}


def _local(name: str, *, size: int, is_here: bool) -> Row:
    return {
        "model": f"local:{name}",
        "provider": "local",
        "id": name,
        "name": None,
        "context_window": None,
        "created": None,
        "fetched": is_here,
        "bytes": size,
        "licence": None,
    }


def echo_row() -> Row:
    """The model that repeats its input."""
    return {
        "model": "echo:",
        "provider": "echo",
        "id": "",
        "name": "repeats the prompt, for trying things out",
        "context_window": None,
        "created": None,
    }
