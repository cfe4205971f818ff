"""Conversations that last: stored on any of six backends, cut to fit a model when they are sent."""

from __future__ import annotations

from dragoman.history.blocking import BlockingChatHistory
from dragoman.history.branches import Branch
from dragoman.history.chat import ChatHistory
from dragoman.history.config import ChatHistoryConfig
from dragoman.history.identity import SessionIdentity
from dragoman.history.keeping import Damaged
from dragoman.history.retention import Retention, Swept, sweep
from dragoman.history.storage.memory import MemoryStorage
from dragoman.history.storage.protocol import Erasure, Filter, Hit, Session, Storage, Total
from dragoman.history.storage.sqlite import SQLiteStorage
from dragoman.history.transfer import Imported, export, import_lines

__all__ = [
    "BlockingChatHistory",
    "Branch",
    "ChatHistory",
    "ChatHistoryConfig",
    "Damaged",
    "Erasure",
    "Filter",
    "Hit",
    "Imported",
    "MemoryStorage",
    "Retention",
    "SQLiteStorage",
    "Session",
    "SessionIdentity",
    "Storage",
    "Swept",
    "Total",
    "export",
    "import_lines",
    "sweep",
]
