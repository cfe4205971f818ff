"""The memory of WebSocket connections: limited for each of them, for a key, and for all."""

from __future__ import annotations

from random import Random

from dragoman.gateway.responses.connections import Connection, TurnMemory

_MOST = 1000
_ALL = 32 * _MOST
_OWN = _ALL // 4


def test_turns_stay_within_the_limits_of_connection_key_and_worker() -> None:
    """Whatever is remembered, used and closed; the sizes always add up, and the last turn stays."""
    draw, memory = Random(3), TurnMemory()
    connections: list[Connection] = []
    turns: dict[Connection, list[str]] = {}
    for number in range(3_000):
        if len(connections) < 40 and draw.random() < 0.2:
            connections.append(Connection(memory, draw.choice([None, "a", "b"]), _MOST))
            turns[connections[-1]] = []
        if not connections:
            continue
        connection = draw.choice(connections)
        known = turns[connection]
        if draw.random() < 0.05:
            connection.close()
            connections.remove(connection)
            continue
        if known and draw.random() < 0.3:
            connection.turn(draw.choice(known))
            continue
        size = draw.randrange(1, 1_100)
        connection.remember(str(number), [number], size)
        known.append(str(number))
        assert (connection.turn(str(number)) is not None) is (size <= _MOST)
        kept = {
            each: sum(turn.size for id in turns[each] if (turn := each._turns.get(id)) is not None)
            for each in connections
        }
        assert max(kept.values()) <= 4 * _MOST
        assert all(len(each._turns) <= 16 for each in connections)
        assert sum(kept.values()) == memory.size <= _ALL
        for key in ("a", "b"):
            assert sum(kept[each] for each in connections if each.key == key) <= _OWN
    for connection in connections:
        connection.close()
    assert memory.size == 0
    assert not memory._sizes


def test_the_turn_used_last_goes_last() -> None:
    """A conversation in progress outlives what other connections of its key remembered later."""
    memory = TurnMemory()
    first, second = Connection(memory, "a", _MOST), Connection(memory, "a", _MOST)
    first.remember("f", [], _MOST)
    others = [Connection(memory, "a", _MOST) for _ in range(8)]
    for number, each in enumerate(others):
        first.turn("f")
        each.remember(str(number), [], _MOST)
    second.remember("s", [], _MOST)
    assert first.turn("f") is not None
    assert others[0].turn("0") is None
    assert others[-1].turn("7") is not None
