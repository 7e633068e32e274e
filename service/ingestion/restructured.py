"""reStructuredText through docutils, with nothing included from outside and nothing raw."""

from __future__ import annotations

from collections.abc import Iterator

from docutils import nodes
from docutils.core import publish_doctree
from docutils.utils import SystemMessage

from service.errors import InvalidInput
from service.ingestion.documents import Document
from service.ingestion.links import resolve_links
from service.ingestion.plain import decode_text, title_from_name
from service.ingestion.split import DEFAULT_OVERLAP, DEFAULT_SIZE, Block, split_sections

_SETTINGS = {
    "_disable_config": True,
    "doctitle_xform": False,
    "file_insertion_enabled": False,
    "halt_level": 6,
    "input_encoding": "unicode",
    "raw_enabled": False,
    "report_level": 5,
    "syntax_highlight": "none",
    "warning_stream": False,
}
_DISABLED = ('"include" directive disabled', '"raw" directive disabled')
_SILENT = (nodes.comment, nodes.pending, nodes.substitution_definition, nodes.target)
_WHOLE = (nodes.Text, nodes.paragraph, nodes.line_block, nodes.term, nodes.field_name, nodes.rubric)


def read_restructured(
    data: bytes,
    *,
    external_id: str,
    size: int = DEFAULT_SIZE,
    overlap: float = DEFAULT_OVERLAP,
) -> Document:
    """A reStructuredText file as a document; a directive docutils does not know stays as text."""
    text = decode_text(data, external_id)
    try:
        tree = publish_doctree(text, settings_overrides=_SETTINGS)
        blocks = list(_find_blocks(tree, level=0))
    except RecursionError as exc:
        raise InvalidInput(f"{external_id}: line 1: blocks are nested too deeply.") from exc
    except SystemMessage as exc:
        raise InvalidInput(f"{external_id}: {exc}") from exc
    title = next((block.text for block in blocks if block.kind == "heading"), None)
    references = [str(each.get("refuri", "")) for each in tree.findall(nodes.reference)]
    return Document(
        external_id=external_id,
        title=title or title_from_name(external_id),
        content=text,
        sections=split_sections(blocks, size=size, overlap=overlap),
        links=resolve_links(references, path=external_id, text=text),
    )


def _find_blocks(node: nodes.Element, *, level: int) -> Iterator[Block]:
    """Headings by the depth of their section, paragraphs, code, and tables by rows."""
    for child in node.children:
        if isinstance(child, nodes.section):
            yield from _find_blocks(child, level=level + 1)
        elif isinstance(child, nodes.title | nodes.subtitle):
            yield _title_block(child, level)
        elif isinstance(child, nodes.literal_block | nodes.doctest_block | nodes.math_block):
            yield Block("code", f"```\n{child.astext()}\n```")
        elif isinstance(child, nodes.table):
            yield Block("table", _table_text(child))
        elif isinstance(child, nodes.system_message):
            yield from _kept_source(child)
        elif isinstance(child, nodes.bullet_list | nodes.enumerated_list):
            yield Block("prose", _list_text(child))
        elif isinstance(child, _WHOLE):
            yield Block("prose", child.astext())
        elif isinstance(child, nodes.Element) and not isinstance(child, _SILENT):
            yield from _find_blocks(child, level=level)


def _title_block(title: nodes.Element, level: int) -> Block:
    """A section's title is a heading; that of a table or an admonition is text."""
    text = " ".join(title.astext().split())
    if isinstance(title.parent, nodes.section):
        return Block("heading", text, level)
    return Block("prose", text)


def _kept_source(message: nodes.system_message) -> Iterator[Block]:
    """The source of a directive that docutils does not know, not of one that is disabled."""
    if message.astext().startswith(_DISABLED) or message.children[0].astext().startswith(_DISABLED):
        return
    for source in message.children:
        if isinstance(source, nodes.literal_block):
            yield Block("prose", source.astext())


def _list_text(listing: nodes.Element) -> str:
    items = (item.astext().replace("\n\n", "\n") for item in listing.children)
    return "\n".join(f"- {item}".replace("\n", "\n  ") for item in items)


def _table_text(table: nodes.table) -> str:
    rows = [
        " | ".join(" ".join(entry.astext().split()) for entry in row.children)
        for row in table.findall(nodes.row)
    ]
    caption = [title.astext() for title in table.children if isinstance(title, nodes.title)]
    return "\n".join([*caption, *(f"| {row} |" for row in rows)])
