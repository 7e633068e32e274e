"""The canonical text of a context: numbered blocks, a heading line and a body each (pure).

The tokens of a context are the sum of its blocks': a block begins with "[" and ends with an empty
line, and no pre-token of o200k or cl100k reaches from a line end into a "[". So what stands before
or after a block never changes how it is counted.
"""

from __future__ import annotations

from collections.abc import Sequence

from service.types import Node

ELLIPSIS = "[…]"
_LONGEST_HEADING = 200
_PATH_SEPARATOR = " > "


def render_block(number: int, heading: str, body: str) -> str:
    """One block as it is counted: marker, heading, body, an empty line."""
    return f"[{number}] {heading}\n{body}\n\n" if heading else f"[{number}]\n{body}\n\n"


def render_context(blocks: Sequence[str]) -> str:
    """The rendered blocks as one text."""
    return "".join(blocks)


def make_heading(node: Node) -> str:
    """The title of a node's document and the headings above it, on one line."""
    title = _one_line(node.doc_title or node.title)
    path = _one_line(node.section_path or "")
    if not path or path == title:
        heading = title
    elif not title or path.startswith(title + _PATH_SEPARATOR):
        heading = path
    else:
        heading = f"{title}{_PATH_SEPARATOR}{path}"
    return heading if len(heading) <= _LONGEST_HEADING else f"{heading[:_LONGEST_HEADING]}…"


def make_body(node: Node) -> str:
    """What a node says: its content, with its summary in front if it has one."""
    content, summary = (text.strip("\r\n").rstrip() for text in (node.content, node.summary))
    if summary and summary not in content:
        return f"{summary}\n{content}" if content else summary
    return content


def _one_line(text: str) -> str:
    return " ".join(text.split())
