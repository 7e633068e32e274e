"""Each format's reader on real small files: title, sections, links, text."""

from __future__ import annotations

from pathlib import Path

import pytest

from service.errors import InvalidInput
from service.ingestion.documents import Document, OutLink
from service.ingestion.html import read_html
from service.ingestion.markdown import read_markdown
from service.ingestion.pdf import read_pdf
from service.ingestion.plain import read_plain
from service.ingestion.restructured import read_restructured

PARAGRAPH = (
    "The index keeps one posting list for each word and answers a question by reading as few of"
    " them as it can, which is why it stays fast when the corpus grows."
)


def outline(document: Document) -> list[str]:
    return [section.section_path for section in document.sections]


def pdf_bytes(pages: list[str], *, title: str = "", outline: list[tuple[str, int]] = []) -> bytes:  # noqa: B006 - never changed
    """A minimal PDF with one line of text for each line of a page."""
    bodies: list[bytes] = []

    def add(body: str) -> int:
        bodies.append(body.encode("latin-1"))
        return len(bodies)

    first_page = 4
    kids = " ".join(f"{first_page + 2 * index} 0 R" for index in range(len(pages)))
    first_entry = first_page + 2 * len(pages)
    marks = f"/Outlines {first_entry} 0 R" if outline else ""
    add(f"<< /Type /Catalog /Pages 2 0 R {marks} >>")
    add(f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>")
    add("<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>")
    for index, text in enumerate(pages):
        add(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] "
            f"/Resources << /Font << /F1 3 0 R >> >> /Contents {first_page + 2 * index + 1} 0 R >>"
        )
        lines = "".join(f"({line}) Tj 0 -16 Td " for line in text.split("\n"))
        stream = f"BT /F1 12 Tf 50 800 Td {lines}ET" if text else ""
        add(f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream")
    if outline:
        last = first_entry + len(outline)
        add(f"<< /Type /Outlines /First {first_entry + 1} 0 R /Last {last} 0 R >>")
        for index, (name, page) in enumerate(outline):
            number = first_entry + 1 + index
            following = f"/Next {number + 1} 0 R" if number < last else ""
            add(
                f"<< /Title ({name}) /Parent {first_entry} 0 R {following} "
                f"/Dest [{first_page + 2 * page} 0 R /Fit] >>"
            )
    information = add(f"<< /Title ({title}) >>")
    data, places = b"%PDF-1.4\n", []
    for number, body in enumerate(bodies, start=1):
        places.append(len(data))
        data += f"{number} 0 obj\n".encode() + body + b"\nendobj\n"
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    trailer = f"trailer << /Size {len(bodies) + 1} /Root 1 0 R /Info {information} 0 R >>"
    end = f"xref\n0 {len(bodies) + 1}\n0000000000 65535 f \n{table}{trailer}\n"
    return data + f"{end}startxref\n{len(data)}\n%%EOF\n".encode()


def test_markdown_keeps_headings_code_and_tables() -> None:
    text = (
        "---\ntitle: 'The guide'\nlang: en\nowner: docs\ntags: [a, b]\n---\n"
        "Before.\n\n# Start *here*\n\nText with [a link](b.md).\n\n"
        "Setext\n------\n\n- item\n\n  ```sql\n  select 1;\n\n  select 2;\n  ```\n- last\n\n"
        "> # quoted, no heading\n\n| a | b |\n|---|---|\n| 1 | 2 |\n"
    )
    document = read_markdown(text.encode(), external_id="guide.md")
    assert (document.title, document.lang) == ("The guide", "en")
    assert document.metadata == {"owner": "docs"}
    assert document.content == text
    assert outline(document) == ["", "Start here", "Start here > Setext"]
    assert document.links == (OutLink("path", "b.md"),)
    last = document.sections[-1].content
    assert "  select 1;\n\n  select 2;" in last
    assert "> # quoted, no heading" in last
    assert last.endswith("| a | b |\n|---|---|\n| 1 | 2 |")


def test_markdown_takes_its_title_from_the_first_heading_or_the_name() -> None:
    assert read_markdown(b"## Two\n\n# One `x`\n", external_id="a/b.md").title == "One x"
    assert read_markdown(b"only text", external_id="a/b.md").title == "b"


def test_a_markdown_text_that_only_looks_like_front_matter_is_text() -> None:
    document = read_markdown(b"---\n\nnever closed", external_id="a.md")
    assert "never closed" in document.sections[0].content


def test_html_gives_the_main_text_without_menus() -> None:
    page = f"""<!DOCTYPE html><html lang="en-GB"><head><title>Guide - Site</title></head><body>
    <nav><a href="/home">Home</a></nav><main><article><h1>The guide</h1><p>{PARAGRAPH}</p>
    <h2>Install</h2><p>{PARAGRAPH} See <a href="../b/other.html#x">the <b>other</b> page</a>.</p>
    <pre><code>pip install x\n  indented</code></pre>
    <table><tr><th>Name</th><th>Use</th></tr><tr><td>k1</td><td>saturation</td></tr></table>
    </article></main><footer>Copyright</footer><script>let no = 1;</script></body></html>"""
    document = read_html(page.encode(), external_id="a/guide.html")
    assert (document.title, document.lang) == ("The guide", "en")
    assert outline(document) == ["The guide", "The guide > Install"]
    assert "```\npip install x\n  indented\n```" in document.sections[1].content
    assert "| k1 | saturation |" in document.sections[1].content
    assert document.links == (OutLink("path", "b/other.html"),)
    assert "Copyright" not in document.content
    assert "let no" not in document.content


def test_html_without_main_content_gives_all_its_visible_text() -> None:
    page = (
        "<title>Tiny</title><link rel=canonical href='https://example.org/tiny'>"
        "<h2>Part</h2>One<br>two <a href=b.html>b</a><ul><li>item</ul>"
        "<pre>\n code\n   more</pre><table><tr><td>a<td>b</tr><tr><td>1<td>2</table>"
        "<nav>menu</nav><style>p {}</style>"
    )
    document = read_html(page.encode(), external_id="tiny.html")
    assert (document.title, document.url) == ("Tiny", "https://example.org/tiny")
    content = document.sections[0].content
    assert content.startswith("One\ntwo b\n\n- item")
    assert "```\n code\n   more\n```" in content
    assert content.endswith("| a | b |\n| 1 | 2 |")
    assert document.links[0] in {
        OutLink("path", "b.html"),
        OutLink("url", "https://example.org/b.html"),
    }
    assert "menu" not in document.content


def test_a_short_html_page_keeps_its_links_but_not_those_of_its_menu() -> None:
    page = (
        '<html><body><nav><a href="home.html">Home</a></nav><h1>Cats</h1>'
        '<p>A cat asks <a href="b.html">the second page</a>.</p></body></html>'
    )
    document = read_html(page.encode(), external_id="cats.html")
    assert document.links == (OutLink("path", "b.html"),)


@pytest.mark.parametrize("depth", [200, 3_000, 100_000])
def test_deep_html_does_not_exhaust_the_stack(depth: int) -> None:
    page = "<div>" * depth + f"<p>{PARAGRAPH}</p>" + "</div>" * depth
    document = read_html(page.encode(), external_id="deep.html")
    assert PARAGRAPH in document.content


def test_html_in_a_stated_encoding_is_read() -> None:
    page = f'<meta charset="iso-8859-1"><h1>Café</h1><p>{PARAGRAPH}</p>'.encode("latin-1")
    assert read_html(page, external_id="cafe.html").title == "Café"


def test_html_without_text_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"empty\.html.*no text"):
        read_html(b"<html><body><script>1</script></body></html>", external_id="empty.html")


def test_a_pdf_without_outline_has_its_pages_as_sections() -> None:
    data = pdf_bytes(["First page\nof two.", "", "Third page."], title="A report")
    document = read_pdf(data, external_id="report.pdf")
    assert document.title == "A report"
    assert outline(document) == ["Page 1", "Page 3"]
    assert document.sections[0].content == "First page\nof two."
    assert document.metadata == {"pages": 3}


def test_a_pdf_with_outline_is_divided_at_its_headings() -> None:
    pages = ["Foreword\n1 Search\nIt finds.\n2 Rank\nIt sorts.", "It goes on."]
    marks = [("Search", 0), ("Rank", 0)]
    document = read_pdf(pdf_bytes(pages, outline=marks), external_id="book.pdf")
    assert [(each.header, each.content) for each in document.sections] == [
        (None, "Foreword"),
        ("Search", "1 Search\nIt finds."),
        ("Rank", "2 Rank\nIt sorts.\n\nIt goes on."),
    ]
    assert document.title == "book"


def test_a_pdf_that_cannot_be_read_names_the_page() -> None:
    with pytest.raises(InvalidInput, match=r"x\.pdf: a damaged PDF; page 1"):
        read_pdf(b"%PDF-1.4 nothing follows", external_id="x.pdf")
    with pytest.raises(InvalidInput, match=r"no text on pages 1 to 2.*OCR"):
        read_pdf(pdf_bytes(["", ""]), external_id="scan.pdf")


def test_an_encrypted_pdf_is_refused_as_such() -> None:
    lock = f"/Encrypt << /Filter /Standard /V 1 /R 2 /P -4 /O <{'00' * 32}> /U <{'11' * 32}> >>"
    data = pdf_bytes(["Text."]).replace(b"/Root", f"{lock} /ID [<00> <00>] /Root".encode())
    with pytest.raises(InvalidInput, match=r"locked\.pdf: the PDF is encrypted"):
        read_pdf(data, external_id="locked.pdf")


def test_a_pdf_with_one_damaged_page_names_that_page() -> None:
    damaged = pdf_bytes(["One.", "Two."]).replace(b"/Type /Page /Parent 2 0 R", b"/Nope", 2)
    damaged = damaged.replace(b"6 0 obj", b"6 0 obx")
    with pytest.raises(InvalidInput, match=r"page \d"):
        read_pdf(damaged, external_id="half.pdf")


def test_restructured_text_gives_sections_code_and_tables(
    capfd: pytest.CaptureFixture[str],
) -> None:
    text = (
        "Guide\n=====\n\nText with `a link <b.html>`_, :class:`Role` and `Name`_.\n\n"
        ".. _Name: https://example.org/n#f\n\nInstall\n-------\n\n.. code-block:: sql\n\n"
        "   select 1;\n\n.. note:: Mind *this*.\n\n- one\n- two\n\n"
        "=== ===\nA   B\n=== ===\n1   2\n=== ===\n\n.. py:function:: find(text)\n\n   Finds.\n\n"
        ".. a comment\n"
    )
    document = read_restructured(text.encode(), external_id="guide.rst")
    assert document.title == "Guide"
    assert outline(document) == ["Guide", "Guide > Install"]
    assert document.sections[0].content == "Text with a link, :class:`Role` and Name."
    content = document.sections[1].content
    for part in ("```\nselect 1;\n```", "Mind this.", "- one\n- two", "| 1 | 2 |", "Finds."):
        assert part in content
    assert "comment" not in content
    assert document.links == (OutLink("path", "b.html"), OutLink("url", "https://example.org/n"))
    assert capfd.readouterr() == ("", "")


def test_restructured_text_reads_no_other_file_and_no_raw_markup(tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("the secret")
    text = f"Text.\n\n.. include:: {secret}\n\n.. raw:: html\n   :file: {secret}\n\n"
    text += f".. csv-table:: x\n   :file: {secret}\n"
    document = read_restructured(text.encode(), external_id="a.rst")
    assert "the secret" not in str(document)


def test_restructured_text_nested_too_deeply_is_refused() -> None:
    text = "\n\n".join("  " * depth + f"quote {depth}" for depth in range(500))
    with pytest.raises(InvalidInput, match=r"deep\.rst.*nested"):
        read_restructured(text.encode(), external_id="deep.rst")


def test_plain_text_has_paragraphs_and_its_name_as_title() -> None:
    document = read_plain(b"One.\r\nStill one.\r\n\r\n  Two.", external_id="x/notes.txt")
    assert document.title == "notes"
    assert document.sections[0].content == "One.\nStill one.\n\n  Two."
    assert document.sections[0].section_path == ""


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_a_byte_order_mark_names_the_encoding(encoding: str) -> None:
    assert read_plain("Grüße".encode(encoding), external_id="a.txt").content == "Grüße"
