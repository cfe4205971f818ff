"""Stored conversations on six backends, truncated to a model's context window when sent.

Names are imported lazily: a backend is loaded only if it is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman._lazy import lazily

if TYPE_CHECKING:
    from dragoman.history.blocking import BlockingChatHistory
    from dragoman.history.branches import Branch
    from dragoman.history.chat import ChatHistory
    from dragoman.history.config import ChatHistoryConfig
    from dragoman.history.identity import SessionIdentity
    from dragoman.history.live_windows import Window
    from dragoman.history.retention import Retention, SweepResult, sweep
    from dragoman.history.storage.chain import ChainStorage
    from dragoman.history.storage.files import FileStorage
    from dragoman.history.storage.mariadb import MariaDBStorage
    from dragoman.history.storage.memory import MemoryStorage
    from dragoman.history.storage.postgres import PostgresStorage
    from dragoman.history.storage.protocol import Erasure, Filter, Hit, Session, Storage, Total
    from dragoman.history.storage.redis import RedisStorage
    from dragoman.history.storage.sealed import SealedStorage
    from dragoman.history.storage.sqlite import SQLiteStorage
    from dragoman.history.storage_urls import open_storage, storage_at
    from dragoman.history.stored_session import DamagedMessage
    from dragoman.history.transfer import ImportResult, export, import_lines, import_messages

_HOMES = {
    "blocking": ("BlockingChatHistory",),
    "branches": ("Branch",),
    "chat": ("ChatHistory",),
    "config": ("ChatHistoryConfig",),
    "identity": ("SessionIdentity",),
    "stored_session": ("DamagedMessage",),
    "storage_urls": ("open_storage", "storage_at"),
    "live_windows": ("Window",),
    "retention": ("Retention", "SweepResult", "sweep"),
    "storage.chain": ("ChainStorage",),
    "storage.files": ("FileStorage",),
    "storage.memory": ("MemoryStorage",),
    "storage.mariadb": ("MariaDBStorage",),
    "storage.postgres": ("PostgresStorage",),
    "storage.protocol": ("Erasure", "Filter", "Hit", "Session", "Storage", "Total"),
    "storage.redis": ("RedisStorage",),
    "storage.sealed": ("SealedStorage",),
    "storage.sqlite": ("SQLiteStorage",),
    "transfer": ("ImportResult", "export", "import_lines", "import_messages"),
}

__all__ = [
    "BlockingChatHistory",
    "Branch",
    "ChainStorage",
    "ChatHistory",
    "ChatHistoryConfig",
    "DamagedMessage",
    "Erasure",
    "FileStorage",
    "Filter",
    "Hit",
    "ImportResult",
    "MariaDBStorage",
    "MemoryStorage",
    "PostgresStorage",
    "RedisStorage",
    "Retention",
    "SQLiteStorage",
    "SealedStorage",
    "Session",
    "SessionIdentity",
    "Storage",
    "SweepResult",
    "Total",
    "Window",
    "export",
    "import_lines",
    "import_messages",
    "open_storage",
    "storage_at",
    "sweep",
]

__getattr__, __dir__ = lazily(__name__, _HOMES)
