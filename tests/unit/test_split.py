"""The splitter: headings first, then tokens; nothing lost, order kept, limits held."""

from __future__ import annotations

import itertools
import time

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from service.errors import InvalidInput
from service.ingestion.documents import Section
from service.ingestion.split import Block, split_sections
from service.tokens import count_tokens

WORDS = st.sampled_from(
    [
        "the",
        "index",
        "holds",
        "nodes.",
        "Postgres,",
        "customerEmail",
        "naïve",
        "漢字",
        "42",
        "ends!",
    ]
)
SENTENCES = st.lists(WORDS, min_size=1, max_size=120).map(" ".join)
ANY_TEXT = st.text(
    st.characters(exclude_categories=("Cs", "Cc"), include_characters="\n\t "), min_size=1
)
LINES = st.lists(st.lists(WORDS, max_size=12).map(" ".join), min_size=1, max_size=60)
PROSE = (SENTENCES | ANY_TEXT).map(lambda text: Block("prose", text))
CODE = LINES.map(lambda lines: Block("code", "\n".join(["```", *lines, "```"])))
TABLE = LINES.map(lambda rows: Block("table", "\n".join(f"| {row} |" for row in rows)))
HEADING = st.builds(Block, st.just("heading"), SENTENCES, st.integers(1, 4))
BODY = st.lists(PROSE | CODE | TABLE, min_size=1, max_size=6)
DOCUMENT = st.lists(PROSE | CODE | TABLE | HEADING, max_size=12)
SIZE = st.integers(32, 120)
OVERLAP = st.sampled_from([0.0, 0.05, 0.1, 0.12, 0.15])

thorough = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


def squeeze(text: str) -> str:
    return "".join(text.split())


def joined(blocks: list[Block]) -> str:
    return "\n\n".join(block.text for block in blocks)


def chunks(blocks: list[Block], *, size: int = 64, overlap: float = 0.0) -> list[str]:
    return [section.content for section in split_sections(blocks, size=size, overlap=overlap)]


def words(count: int, *, start: int = 0) -> str:
    return " ".join(f"word{number}" for number in range(start, start + count))


@thorough
@given(BODY, SIZE)
def test_without_overlap_the_chunks_are_the_text_itself(blocks: list[Block], size: int) -> None:
    assert squeeze("".join(chunks(blocks, size=size))) == squeeze(joined(blocks))


@thorough
@given(DOCUMENT, SIZE, OVERLAP)
def test_no_chunk_exceeds_the_limit_or_is_blank(
    blocks: list[Block], size: int, overlap: float
) -> None:
    for section in split_sections(blocks, size=size, overlap=overlap):
        assert 0 < section.token_count == count_tokens(section.content) <= size
        assert section.content.strip()


@thorough
@given(DOCUMENT, SIZE, OVERLAP)
def test_every_heading_and_every_word_of_a_document_is_found_again(
    blocks: list[Block], size: int, overlap: float
) -> None:
    sections = split_sections(blocks, size=size, overlap=overlap)
    found = squeeze("".join(f"{each.section_path} {each.content}" for each in sections))
    for block in blocks:
        for word in block.text.split() if block.kind == "heading" else ():
            assert word in found
    assert [section.order_index for section in sections] == list(range(len(sections)))


@thorough
@given(BODY, SIZE, OVERLAP)
@example([Block("prose", words(400))], 64, 0.15)
def test_an_overlap_repeats_at_most_its_share_of_the_text_before(
    blocks: list[Block], size: int, overlap: float
) -> None:
    text = joined(blocks)
    compact, shared = squeeze(text), int(size * overlap)
    ends = {0}  # a text that repeats itself can be read in several ways
    for part in chunks(blocks, size=size, overlap=overlap):
        piece = squeeze(part)
        ends = {
            start + len(piece)
            for end in ends
            for start in range(max(0, end - 20 * shared), end + 1)
            if compact.startswith(piece, start) and count_tokens_from(text, start, end) <= shared
        }
    assert len(compact) in ends


def count_tokens_from(text: str, start: int, end: int) -> int:
    """The tokens between two places that are counted in characters other than white space."""
    if start == end:
        return 0
    places = [index for index, letter in enumerate(text) if not letter.isspace()]
    return count_tokens(text[places[start] : places[end - 1] + 1])


@given(st.integers(200, 500))
@settings(deadline=None, max_examples=20)
def test_long_prose_does_overlap_as_configured(count: int) -> None:
    parts = chunks([Block("prose", words(count))], size=100, overlap=0.15)
    for before, after in itertools.pairwise(parts):
        shared = set(before.split()) & set(after.split())
        tokens = count_tokens(" ".join(sorted(shared)))
        assert 8 <= tokens <= 16, "about 15 of 100 tokens; a word has two or three"
        assert before.split()[-len(shared) :] == after.split()[: len(shared)]


@given(LINES, LINES)
@thorough
def test_code_and_table_rows_that_fit_are_never_cut(code: list[str], rows: list[str]) -> None:
    fence = "\n".join(["```", *code, "```"])
    table = [f"| {row} |" for row in rows]
    blocks = [Block("prose", words(40)), Block("code", fence), Block("table", "\n".join(table))]
    parts = chunks(blocks, size=100, overlap=0.1)
    if count_tokens(fence) <= 100:
        assert any(fence in part for part in parts)
        assert all(part.count("```") in {0, 2} for part in parts)
    for row in table:
        assert count_tokens(row) > 90 or any(row in part for part in parts)


def test_a_code_block_larger_than_a_chunk_is_cut_at_line_ends() -> None:
    lines = [f"    value_{number} = compute({number})" for number in range(60)]
    code = Block("code", "\n".join(["```python", *lines, "```"]))
    parts = chunks([code], size=64)
    assert [line for part in parts for line in part.split("\n")] == code.text.split("\n")


def test_an_overlap_begins_with_a_sentence_when_one_is_near() -> None:
    text = " ".join(f"This is sentence number {number} of the text." for number in range(60))
    parts = chunks([Block("prose", text)], size=80, overlap=0.15)
    assert len(parts) > 3
    assert all(part.startswith("This is") for part in parts)


def test_sections_carry_the_path_of_their_headings() -> None:
    blocks = [
        Block("prose", "Preamble."),
        Block("heading", "Guide", 1),
        Block("heading", "Install", 2),
        Block("prose", "Run it."),
        Block("heading", "Linux", 3),
        Block("prose", "On Linux."),
        Block("heading", "Use", 2),
        Block("prose", "Use it."),
        Block("heading", "Later", 2),
    ]
    assert [(each.section_path, each.header, each.content) for each in split_sections(blocks)] == [
        ("", None, "Preamble."),
        ("Guide > Install", "Install", "Run it."),
        ("Guide > Install > Linux", "Linux", "On Linux."),
        ("Guide > Use", "Use", "Use it."),
        ("Guide > Later", "Later", "Later"),
    ]


def test_an_overlap_never_crosses_a_heading() -> None:
    blocks = [
        Block("heading", "One", 1),
        Block("prose", words(100)),
        Block("heading", "Two", 1),
        Block("prose", words(100, start=100)),
    ]
    sections = split_sections(blocks, size=64, overlap=0.15)
    second = [section for section in sections if section.header == "Two"]
    assert second[0].content.startswith("word100 ")


def test_a_text_that_fits_is_one_section_and_no_text_is_none() -> None:
    assert split_sections([Block("prose", " Hello there. ")]) == (
        Section(0, None, "", "Hello there.", 3),
    )
    assert split_sections([]) == split_sections([Block("prose", " \n")]) == ()


@pytest.mark.parametrize(("size", "overlap"), [(8, 0.1), (9000, 0.1), (400, 0.16), (400, -0.1)])
def test_limits_that_cannot_work_are_refused(size: int, overlap: float) -> None:
    with pytest.raises(InvalidInput):
        split_sections([], size=size, overlap=overlap)


@pytest.mark.parametrize("text", ["x" * 300_000, "漢字" * 50_000, words(40_000), " \n" * 100_000])
def test_a_long_run_without_structure_does_not_stall(text: str) -> None:
    began = time.monotonic()
    sections = split_sections([Block("prose", text)])
    assert time.monotonic() - began < 5, "the library alone takes quadratic time here"
    assert all(section.token_count <= 400 for section in sections)


def test_special_token_spellings_are_ordinary_text() -> None:
    assert count_tokens("<|endoftext|>") > 1
    assert count_tokens("") == 0
