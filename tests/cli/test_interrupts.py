"""Signals that arrive while a command waits."""

from __future__ import annotations

import asyncio
import signal

import pytest

from dragoman.cli import provider_errors
from dragoman.cli.interrupts import notice_signals


async def is_woken() -> bool:
    """Whether a signal wakes the running loop, however late it comes."""
    found = signal.set_wakeup_fd(-1)
    if found != -1:
        signal.set_wakeup_fd(found)
    return found != -1


def test_a_loop_that_waits_is_woken_by_any_signal() -> None:
    """Also in commands that ask a provider; a plain loop is not, and may miss Ctrl-C."""
    assert not asyncio.run(is_woken())
    with asyncio.Runner() as runner:
        notice_signals(runner.get_loop())
        assert runner.run(is_woken())
    assert provider_errors.run(is_woken(), "a provider")
    assert signal.getsignal(signal.SIGCONT) is signal.SIG_DFL


def test_ctrl_c_still_cancels_what_runs() -> None:
    """It raises KeyboardInterrupt, as without a loop."""

    async def interrupted() -> None:
        signal.raise_signal(signal.SIGINT)
        await asyncio.sleep(60)

    with pytest.raises(KeyboardInterrupt):
        provider_errors.run(interrupted(), "a provider")
