"""What the page is told of a run: messages as they are stored, and what was sent."""

from __future__ import annotations

from time import time
from typing import Any

from dragoman.errors import DragomanError
from dragoman.gateway.page.branches import Branches, Stretched
from dragoman.gateway.page.routed import PlacedModel
from dragoman.gateway.page.views import view_of
from dragoman.history.branch_paths import read_tail, stretches
from dragoman.history.identity import SessionIdentity
from dragoman.history.storage.protocol import Storage
from dragoman.model.messages import Message
from dragoman.model.requests import Request
from dragoman.wire.encoded import Encoded
from dragoman.wire.losses import Loss, Repair

_MOST_NOTES = 200


class Viewer:
    """Shows messages of one conversation, each with its alternatives."""

    def __init__(self, storage: Storage, identity: SessionIdentity, branches: Branches) -> None:
        self._storage, self._identity, self._branches = storage, identity, branches

    async def view(self, message: Message) -> dict[str, Any]:
        """A message that is stored."""
        view = view_of(message, self._identity.digest)
        view["created_at"] = message.created_at or time()
        session = await self._storage.session(self._identity)
        if session is None or not session.forks:
            return view
        row = await self._storage.row(self._identity, message.id)
        if row is None:
            return view
        path = stretches(session, row.branch, row.seq)
        rows = await read_tail(self._storage, self._identity, path, 2)
        found = Stretched([row], rows[0] if len(rows) > 1 else None, has_more=False)
        siblings = (await self._branches.siblings(session, found)).get(row.id)
        if siblings:
            view |= {"siblings": siblings, "sibling": siblings.index(row.branch)}
        return view


def sent_view(place: PlacedModel, request: Request, omitted: int) -> dict[str, Any]:
    """What a place was sent, without the body itself: that can be asked for."""
    try:
        encoded = place.encoded(request)
    except DragomanError:  # it was not told so: a model in this process takes anything
        return {"dialect": place.dialect, "losses": [], "repairs": [], "omitted": omitted}
    return {
        "dialect": place.dialect,
        "target": place.name,
        "omitted": omitted,
        **notes_of(encoded),
    }


def notes_of(encoded: Encoded) -> dict[str, Any]:
    """The losses and repairs of a request, as many as anybody reads."""
    return {
        "losses": [loss_view(each) for each in encoded.losses[:_MOST_NOTES]],
        "repairs": [repair_view(each) for each in encoded.repairs[:_MOST_NOTES]],
    }


def loss_view(loss: Loss) -> dict[str, Any]:
    """What could not be said."""
    return {"path": loss.path, "reason": loss.reason}


def repair_view(repair: Repair) -> dict[str, Any]:
    """What was changed so that the target takes it."""
    return {
        "path": repair.path, "rule": repair.rule, "action": repair.action, "reason": repair.reason,
    }  # fmt: skip
