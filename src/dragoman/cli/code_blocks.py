"""Extracts the code blocks of a Markdown text."""

from __future__ import annotations


def code_blocks(text: str) -> list[str]:
    r"""The contents of its fenced code blocks, in order.

    >>> code_blocks("So:\n```python\nprint(1)\n```\nor\n~~~\nx\n~~~")
    ['print(1)\n', 'x\n']
    """
    from markdown_it import MarkdownIt

    found = MarkdownIt("commonmark").parse(text)
    return [token.content for token in found if token.type == "fence"]
