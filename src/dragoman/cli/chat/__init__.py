"""`dragoman chat`: a conversation with a model, in the terminal."""

from __future__ import annotations

from dragoman.cli.chat.command import chat

__all__ = ["chat"]
