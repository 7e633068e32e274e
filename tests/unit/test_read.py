"""Finding files and reading them: what is bad is named by its place, never a traceback."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from service.errors import InvalidInput
from service.ingestion.documents import Document
from service.ingestion.jsonl import BadLine, NodeRow, is_beir_folder, read_jsonl
from service.ingestion.read import (
    MAX_BYTES,
    Source,
    detect_language,
    find_files,
    read_document,
    read_rows,
)

ENGLISH = "The index holds the nodes of one tenant, and every question names the tenant it asks. "


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("b.md", "a.txt", "sub/c.html", "sub/deep/d.rst", ".hidden/e.md", "sub/.f.md"):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"<p>{name} {ENGLISH}</p>")
    (tmp_path / "picture.png").write_bytes(b"\x89PNG")
    return tmp_path


def ids(sources: list[Source]) -> list[str]:
    return [source.external_id for source in sources]


def read_file(path: Path) -> Document:
    return read_document(find_files([str(path)])[0])


def stdin(data: bytes) -> io.BufferedReader:
    return io.BufferedReader(io.BytesIO(data))


def test_a_folder_gives_its_readable_files_in_order_without_hidden_ones(folder: Path) -> None:
    found = find_files([str(folder)])
    assert ids(found) == ["a.txt", "b.md", "sub/c.html", "sub/deep/d.rst"]
    assert [source.format for source in found] == ["text", "markdown", "html", "restructured"]


def test_files_globs_and_a_root_decide_the_ids(folder: Path) -> None:
    assert ids(find_files([str(folder / "sub" / "c.html")])) == ["c.html"]
    assert ids(find_files([f"{folder}/sub/**/*.*"])) == ["c.html", "deep/d.rst"]
    assert ids(find_files([f"{folder}/*"], root=folder)) == [
        *("a.txt", "b.md", "picture.png", "sub/c.html", "sub/deep/d.rst")
    ]
    assert ids(find_files([str(folder / "sub")], root=folder)) == ["sub/c.html", "sub/deep/d.rst"]


def test_a_file_named_twice_is_read_once(folder: Path) -> None:
    assert ids(find_files([str(folder), str(folder / "b.md")])).count("b.md") == 1


def test_a_link_in_a_circle_does_not_hang(folder: Path) -> None:
    (folder / "sub" / "round").symlink_to(folder)
    assert len(find_files([str(folder)])) == 4


def test_two_files_with_one_id_are_refused(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "README.md").write_text(name)
    folders = [str(tmp_path / "one"), str(tmp_path / "two")]
    with pytest.raises(InvalidInput, match=r"README\.md.*one.*two"):
        find_files(folders)
    assert ids(find_files(folders, root=tmp_path)) == ["one/README.md", "two/README.md"]


@pytest.mark.parametrize("given", ["missing.md", "*.nothing"])
def test_a_path_that_names_nothing_is_refused(tmp_path: Path, given: str) -> None:
    with pytest.raises(InvalidInput, match=r"no such file|nothing matches"):
        find_files([str(tmp_path / given)])


def test_a_file_outside_the_root_is_refused(folder: Path) -> None:
    with pytest.raises(InvalidInput, match="not below the root"):
        find_files([str(folder / "b.md")], root=folder / "sub")


@pytest.mark.parametrize(
    ("data", "known"),
    [
        (b"# Title\n\nText", "markdown"),
        (b"<!DOCTYPE html><p>Text</p>", "html"),
        (b"\n<HTML><body>Text", "html"),
        (b"%PDF-1.7", "pdf"),
        (b'{"_id": "1", "text": "x"}\n', "jsonl"),
    ],
)
def test_standard_input_is_sniffed(data: bytes, known: str) -> None:
    (source,) = find_files(["-"], stdin=stdin(data))
    assert (source.external_id, source.format) == ("stdin", known)


def test_standard_input_is_read_whole_after_the_sniff() -> None:
    text = b"# Title\n\n" + ENGLISH.encode() * 200
    (source,) = find_files(["-"], stdin=stdin(text))
    document = read_document(source)
    assert document.content.encode() == text
    assert (document.title, document.lang) == ("Title", "en")


def test_a_file_without_suffix_is_sniffed(tmp_path: Path) -> None:
    (tmp_path / "LICENSE").write_text(ENGLISH)
    assert read_file(tmp_path / "LICENSE").title == "LICENSE"


@pytest.mark.parametrize(
    ("name", "data", "reason"),
    [
        ("binary.md", b"\x89PNG\r\n\x1a\n\0\0\0", "byte 0 is not valid UTF-8"),
        ("nul.md", b"line\nab\0cd", r"NUL character at byte 7 \(line 2\)"),
        ("empty.md", b"", "empty"),
        ("blank.txt", b" \n\t\n", "empty"),
        ("bom.txt", b"\xef\xbb\xbf", "empty"),
        ("latin.txt", "Gr\xfc\xdfe".encode("latin-1"), "byte 2 is not valid UTF-8"),
        ("odd.txt", b"\xff\xfea\0b", r"byte 4 is not valid UTF-16"),
        ("broken.pdf", b"%PDF-1.4\n%%EOF", "page 1"),
        ("empty.html", b"<html></html>", "no text"),
        ("bad.rst", b"\xff", "byte 0 is not valid UTF-8"),
        ("only.md", b"---\ntitle: x\n---\n", "no text"),
        ("nodes.jsonl", b"{}", "JSON Lines"),
    ],
)
def test_bad_input_is_named_by_file_and_place(
    tmp_path: Path, name: str, data: bytes, reason: str
) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(InvalidInput, match=rf"{name}.*{reason}"):
        read_file(tmp_path / name)


def test_a_file_of_100_megabytes_is_refused_unread(tmp_path: Path) -> None:
    with (tmp_path / "large.md").open("wb") as file:
        file.truncate(100 * 1024 * 1024)
    with pytest.raises(InvalidInput, match=r"large\.md: larger than 32 MiB"):
        read_file(tmp_path / "large.md")


def test_a_file_that_vanished_and_a_folder_named_like_a_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="no such file"):
        read_document(Source("x.md", "markdown", path=tmp_path / "x.md"))
    (tmp_path / "folder.md").mkdir()
    assert find_files([str(tmp_path)]) == []


def test_the_language_is_told_only_when_it_is_sure() -> None:
    german = "Der Index enthält die Knoten eines Mandanten, und jede Frage nennt den Mandanten."
    assert detect_language(ENGLISH) == "en"
    assert detect_language(german) == "de"
    assert detect_language("Hello") is None
    assert detect_language("12 34 56 " * 50) is None


def test_a_beir_folder_is_one_source_of_rows(tmp_path: Path) -> None:
    (tmp_path / "queries.jsonl").write_text('{"_id": "q", "text": "?"}')
    assert not is_beir_folder(tmp_path)
    lines = [{"_id": "d1", "title": "One", "text": "First.", "year": 1999}, {"_id": 2, "text": "x"}]
    (tmp_path / "corpus.jsonl").write_text("\n".join(map(json.dumps, lines)))
    (source,) = find_files([str(tmp_path)])
    first, second = read_rows(source)
    assert isinstance(first, NodeRow)
    assert isinstance(second, NodeRow)
    assert (first.draft.external_id, first.draft.title) == ("d1", "One")
    assert (first.draft.content, first.draft.metadata) == ("First.", {"year": 1999})
    assert first.draft.token_count == 2
    assert (second.line, second.draft.external_id, second.draft.title) == (2, "2", "")


def test_a_node_line_is_a_draft_with_its_vector_and_links() -> None:
    line = {
        "external_id": "n",
        "node_type": "field",
        "title": "email",
        "acl": ["hr"],
        "summary": None,
        "metadata": {"a": [1]},
        "order_index": 3,
        "searchable": True,
        "embedding": [0.5, 1],
        "links": ["m"],
    }
    (row,) = read_jsonl([json.dumps(line)])
    assert isinstance(row, NodeRow)
    assert (row.draft.node_type, row.draft.summary, row.draft.order_index) == ("field", "", 3)
    assert (list(row.draft.acl), row.links) == (["hr"], ("m",))
    assert row.embedding is not None
    assert row.embedding.tolist() == [0.5, 1.0]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'{"external_id": "a"', "not JSON: Expecting ',' delimiter at column 20"),
        (b"[1]", "not a JSON object"),
        (b'{"external_id": "a"}', "node_type is missing"),
        (b'{"external_id": " ", "node_type": "x"}', "is empty"),
        (b'{"external_id": 1, "node_type": "x"}', "external_id is not text"),
        (b'{"external_id": "a", "node_type": "x", "nonsense": 1}', "unknown key 'nonsense'"),
        (b'{"external_id": "a", "node_type": "x", "order_index": true}', "not a whole number"),
        (b'{"external_id": "a", "node_type": "x", "metadata": []}', "not an object"),
        (b'{"external_id": "a", "node_type": "x", "acl": [1]}', "acl is not a list of texts"),
        (b'{"external_id": "a", "node_type": "x", "searchable": 1}', "neither true nor false"),
        (b'{"external_id": "a", "node_type": "x", "embedding": [NaN]}', "NaN is not JSON"),
        (b'{"external_id": "a", "node_type": "x", "embedding": [1e400]}', "finite"),
        (b'{"external_id": "a", "node_type": "x", "embedding": [1e300]}', "too large"),
        (b'{"external_id": "a", "node_type": "x", "embedding": "1"}', "list of numbers"),
        (b'{"external_id": "a", "node_type": "x", "embedding": [true]}', "list of numbers"),
        (b'{"_id": "a", "embedding": [1' + b"0" * 400 + b"]}", "too large"),
        (b'{"external_id": "a", "node_type": "x", "links": "b"}', "links is not a list"),
        (b'{"external_id": "a", "node_type": "x", "title": "\\u0000"}', "NUL"),
        (b'{"external_id": "a", "node_type": "x", "title": "\\ud800"}', "surrogate"),
        (b'{"_id": [], "text": "x"}', "_id is neither"),
        (b'{"_id": "a", "text": 1}', "text is not text"),
        (b'{"_id": "\xff"}', "byte 9 is not valid UTF-8"),
        (b'{"_id": ' + b"[" * 100_000, "nested too deeply"),
        (b'{"_id": ' + b"1" * 5_000 + b"}", "too long"),
    ],
)
def test_a_bad_line_is_named_and_the_others_go_on(line: bytes, reason: str) -> None:
    good = b'{"_id": "ok", "text": "x \\\\u0000 \\ud83d\\ude00"}'
    rows = list(read_jsonl([b"\xef\xbb\xbf" + good, b"\n", line, good]))
    assert [type(row) for row in rows] == [NodeRow, BadLine, NodeRow]
    assert [row.line for row in rows] == [1, 3, 4]
    assert isinstance(rows[1], BadLine)
    assert reason in rows[1].reason


def test_a_line_without_end_is_refused_before_it_fills_the_memory(tmp_path: Path) -> None:
    with (tmp_path / "x.jsonl").open("wb") as file:
        file.truncate(MAX_BYTES + 10)
    with pytest.raises(InvalidInput, match="line 1 is larger"):
        list(read_rows(find_files([str(tmp_path / "x.jsonl")])[0]))
