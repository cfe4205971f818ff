"""The exception that stops the parser of a response."""


class Unreadable(Exception):  # noqa: N818 - control flow: the connection turns it into an error
    """The response is not HTTP, or exceeds a limit."""
