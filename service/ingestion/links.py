"""Links of a document to others: Markdown, HTML and wiki style, resolved by path (pure)."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Sequence
from urllib.parse import unquote, urljoin, urlsplit, urlunsplit

from markdown_it.token import Token

from service.ingestion.documents import OutLink

_WIKI_LINK = re.compile(r"\[\[([^\[\]\n]{1,500})\]\]")
_HREF = re.compile(
    r"""<a\s(?:[^<>]*?\s)?href\s*=\s*(?:"([^"<>]*)"|'([^'<>]*)'|([^\s"'<>]+))""", re.IGNORECASE
)


def find_markdown_links(tokens: Sequence[Token], *, path: str) -> tuple[OutLink, ...]:
    """The links of parsed Markdown in order, each once: inline, wiki style, and inline HTML."""
    return _collect(_markdown_targets(tokens, path), path=path)


def find_wiki_links(text: str) -> Iterator[OutLink]:
    """`[[Title]]`, `[[Title|label]]` and `[[Title#anchor]]`, each by its title."""
    for match in _WIKI_LINK.finditer(text):
        title = " ".join(match.group(1).split("|")[0].split("#")[0].split())
        if title:
            yield OutLink("title", title)


def resolve_links(references: Iterable[str], *, path: str, text: str = "") -> tuple[OutLink, ...]:
    """Link targets as written, and a text's wiki links, as out-links, each once, in order."""
    resolved = (resolve_link(each, path=path) for each in references)
    return _collect([*resolved, *find_wiki_links(text)], path=path)


def resolve_link(reference: str, *, path: str) -> OutLink | None:
    """What a link of the document at `path`, or a URL, points to; None if to no other document."""
    stated = reference.strip().replace("\\", "/")
    try:
        if is_web_address(path) and not stated.startswith("#"):
            stated = urljoin(path, stated)
        parts = urlsplit(stated)
    except ValueError:  # such as an unclosed bracket in the host
        return None
    if parts.scheme.lower() in {"http", "https"} or (parts.netloc and not parts.scheme):
        scheme = parts.scheme.lower() or "https"
        address = urlunsplit((scheme, parts.netloc.lower(), parts.path, parts.query, ""))
        return OutLink("url", address) if parts.netloc else None
    if parts.scheme or not parts.path:
        return None
    return _resolve_path(unquote(parts.path), path=path)


def is_web_address(path: str) -> bool:
    """Whether a document is known by its URL and not by a path."""
    return path.lower().startswith(("http://", "https://"))


def _resolve_path(target: str, *, path: str) -> OutLink | None:
    """A path from the source's root, normalised; None where it leaves the root."""
    if not target.startswith("/"):
        target = posixpath.join(posixpath.dirname(path), target)
    normalised = posixpath.normpath(target.lstrip("/"))
    if normalised in {".", ".."} or normalised.startswith("../") or "\0" in normalised:
        return None
    return OutLink("path", normalised)


def _markdown_targets(tokens: Sequence[Token], path: str) -> Iterator[OutLink | None]:
    for token in tokens:
        if token.type == "html_block":
            yield from _html_targets(token.content, path)
        for child in token.children or ():
            if child.type == "link_open":
                yield resolve_link(str(child.attrs.get("href", "")), path=path)
            elif child.type == "text":
                yield from find_wiki_links(child.content)
            elif child.type == "html_inline":
                yield from _html_targets(child.content, path)


def _html_targets(markup: str, path: str) -> Iterator[OutLink | None]:
    for match in _HREF.finditer(markup):
        reference = next(group for group in match.groups() if group is not None)
        yield resolve_link(reference, path=path)


def _collect(found: Iterable[OutLink | None], *, path: str) -> tuple[OutLink, ...]:
    """Each link once, in order, without those to the document itself."""
    own = {OutLink("path", path), OutLink("url", path)}
    return tuple(dict.fromkeys(link for link in found if link is not None and link not in own))
