"""Bugs that users reported to other projects, as a table: what was sent, and what must hold.

The next reported bug is one row. A file of this folder that has `ROWS` is part of the table: one
file for each subject (`cut_calls.py`, `openings.py`, …), with rows like

    Row(
        "A call whose arguments were cut off never becomes a valid object",
        "BerriAI/litellm#20711",
        Stream("openai-chat", (call_frame, "[DONE]")),
        (no_runnable_calls, is_unfinished),
    )

A row has a sentence, where it was reported, what is given, and the claims that must hold for each
target in `to` (all dialects by default). What can be given (`tests.peers.rows`):

- `Request(dialect, body)`: a client's request; it is translated to each target, which may also be
  a provider or `provider:model`.
- `Answer(dialect, body)`: a provider's whole response; each front writes it, and its client reads
  it.
- `Stream(dialect, frames)`: a provider's stream; the same. Frames are objects, or texts that are
  no JSON (`[DONE]`), or bytes that are written as they are.

A claim is a function of the `Outcome` (`tests.peers.claims`); one that only a single row needs may
stand beside that row. A bug that is not ours is a row too: it shows that it is not.
"""
