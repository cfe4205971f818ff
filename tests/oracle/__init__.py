"""The oracle: what the wire layer of another commit does with the same bodies.

`python -m tests.oracle` reads bodies from the recordings and from `tests.wire.every_place`, gives
each to two processes, one with the frozen commit's `src` and one with this tree's, and prints every
difference of what they make of it: values, extras, bodies, paths, headers, losses, repairs, events,
findings of `check`, and errors. It is for changes of the design that keep the behaviour.

    python -m tests.oracle                       # one case in fifty, about a minute
    python -m tests.oracle --every 1             # all
    python -m tests.oracle --dialect anthropic --kind stream --every 5
    python -m tests.oracle --ignore extras       # the kept spelling may have another form

The frozen tree comes from git (`FROZEN`), so nothing is stored twice.
"""

FROZEN = "HEAD"
"""The commit whose behaviour is kept, unless `--commit` names another."""
