"""The answer as it is written, the way to its sources, the context, the links, the time it took."""

from __future__ import annotations

import re
from threading import Event
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import PATIENCE, OpenPage, Visit
from tests.messages_server import Answer, MessagesServer, fail, stream_events

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("browser")]
QUESTION = "How does row-level security keep tenants apart?"
# Sentences are let through when they are whole: the first ends before the middle.
WRITTEN = (
    "Venus is the hottest planet [1]. "
    "Its thick air holds the heat of the Sun as a blanket does, which keeps it warm day and night."
)


@pytest.fixture
def demo(open_page: OpenPage, demo_site: str) -> Visit:
    return open_page(demo_site)


@pytest.fixture
def planets(open_page: OpenPage, locked_site: str, planets_key: str) -> Visit:
    visit = open_page(locked_site)
    visit.page.get_by_label("Key", exact=True).fill(planets_key)
    visit.page.get_by_role("button", name="Use key").click()
    expect(visit.page.get_by_role("dialog")).to_be_hidden()
    return visit


def pause(text: str, going_on: Event) -> Answer:
    """Write half of a text, and the rest when it is allowed."""

    def answer(handler: Any, request: dict[str, Any]) -> None:
        events = stream_events(text)
        half = len(events) // 2
        handler.send_events(events[:half])
        going_on.wait(PATIENCE / 1000)
        for event in events[half:]:
            handler.send_bytes(event.encode())

    return answer


def test_without_claude_the_answer_is_the_sources_own_sentences(demo: Visit):
    demo.ask(QUESTION)
    expect(demo.page.locator("#answer-mode")).to_have_text("the sources' own sentences")
    expect(demo.page.locator("#answer-foot")).to_contain_text("There is no API key for Claude.")
    assert demo.page.locator("#answer-text .cite").count() >= 1


def test_the_answer_appears_while_it_is_written(planets: Visit, claude: MessagesServer):
    going_on = Event()
    claude.will(pause(WRITTEN, going_on))
    page = planets.page
    page.get_by_role("searchbox").fill("Which planet is the hottest?")
    page.keyboard.press("Enter")
    expect(page.locator("#answer-text")).to_contain_text("Venus is the hottest planet")
    expect(page.locator("#answer")).to_have_attribute("aria-busy", "true")
    expect(page.locator("#answer-text")).not_to_contain_text("keeps it warm")
    going_on.set()
    expect(page.locator("#answer-text")).to_contain_text("keeps it warm day and night.")
    expect(page.locator("#answer")).to_have_attribute("aria-busy", "false")
    expect(page.locator("#answer-mode")).to_have_text("written by Claude")


def test_escape_stops_an_answer_on_its_way(planets: Visit, claude: MessagesServer):
    going_on = Event()
    claude.will(pause(WRITTEN, going_on))
    page = planets.page
    page.get_by_role("searchbox").fill("Which planet is the hottest?")
    page.keyboard.press("Enter")
    expect(page.locator("#answer-text")).to_contain_text("Venus is the hottest planet")
    page.get_by_role("searchbox").press("Escape")
    expect(page.locator("#answer")).to_have_attribute("aria-busy", "false")
    going_on.set()
    page.wait_for_timeout(300)
    expect(page.locator("#answer-text")).not_to_contain_text("keeps it warm")


def test_where_claude_fails_the_sources_speak_and_the_page_says_why(
    planets: Visit, claude: MessagesServer
):
    claude.will(fail(400))
    planets.ask("Which planet is the hottest?")
    expect(planets.page.locator("#answer-mode")).to_contain_text("Claude failed")
    expect(planets.page.locator("#answer-text")).to_contain_text("Venus is the hottest planet")


def test_a_citation_leads_to_its_section(demo: Visit):
    with demo.page.expect_response("**/v1/context") as caught:
        demo.ask(QUESTION)
    blocks = {block["number"]: block for block in caught.value.json()["blocks"]}
    cite = demo.page.locator("#answer-text .cite").last
    number = int(cite.inner_text())
    cite.click()
    nodes = [item["node_id"] for item in blocks[number]["items"]]
    focused = demo.page.evaluate(
        "document.activeElement.closest('[data-node]')?.dataset.node"
        " ?? document.activeElement.closest('[data-block]')?.dataset.block"
    )
    assert int(focused) in [*nodes, number]
    expect(demo.page.locator(".flash")).to_be_in_viewport()
    assert demo.page.locator(".flash .full").first.is_visible()


def test_an_answer_is_marked_when_the_settings_it_was_made_with_change(demo: Visit):
    demo.ask(QUESTION)
    again = demo.page.get_by_role("button", name="Answer again")
    expect(again).to_be_hidden()
    demo.page.get_by_role("switch", name="Walk along links").click()
    expect(again).to_be_visible()
    with demo.page.expect_request("**/v1/answer") as caught:
        again.click()
    assert (caught.value.post_data_json or {})["options"] == {"walk_weight": 0}
    demo.wait()
    expect(again).to_be_hidden()


def test_the_context_stays_in_its_budget_and_says_what_was_left_out(demo: Visit):
    demo.ask(QUESTION)
    page = demo.page
    with page.expect_response("**/v1/context") as caught:
        page.get_by_role("slider", name="Token budget").fill("300")
    packed = caught.value.json()
    expect(page.locator("#context-total")).to_have_text(f"{packed['tokens']} of 300 tokens")
    assert packed["tokens"] <= 300
    dropped = [each for each in packed["candidates"] if each["outcome"] == "dropped"]
    expect(page.locator(".drops li")).to_have_count(len(dropped))
    assert "budget" in {each["reason"] for each in dropped}
    expect(page.locator(".drops")).to_contain_text("beyond the budget")
    filled = page.locator(".budget span").evaluate_all(
        "pieces => pieces.reduce((sum, piece) => sum + piece.offsetWidth, 0)"
        " / pieces[0].parentElement.offsetWidth"
    )
    assert filled == pytest.approx(packed["tokens"] / 300, abs=0.05)


def test_the_latency_strip_names_every_step_that_took_time(demo: Visit):
    with demo.page.expect_response("**/v1/search") as caught:
        demo.ask(QUESTION)
    timings = {each["step"]: each["milliseconds"] for each in caught.value.json()["timings"]}
    shown = demo.page.locator(".steps li span").all_inner_texts()
    longest = max((name for name in timings if name != "total"), key=timings.__getitem__)
    assert longest in shown
    total = demo.page.locator("#latency-total").inner_text()
    assert re.match(r"[\d.]+ ms, [\d.]+ ms in the browser", total)


def test_the_picture_shows_the_links_with_size_by_pagerank(demo: Visit):
    with demo.page.expect_response("**/v1/graph") as caught:
        demo.ask(QUESTION)
    graph = caught.value.json()
    linked = {end for link in graph["links"] for end in (link["source_id"], link["target_id"])}
    nodes = [node for node in graph["nodes"] if node["node_id"] in linked]
    circles = demo.page.locator("#graph circle")
    expect(circles).to_have_count(len(nodes))
    radii = circles.evaluate_all("all => all.map(circle => Number(circle.getAttribute('r')))")
    ranks = sorted((node["rank"] for node in nodes), reverse=True)
    assert radii == pytest.approx([3.5 + 10.5 * rank**0.5 for rank in ranks], abs=1e-6)
    demo.page.locator("#graph .way").first.focus()
    demo.page.keyboard.press("Enter")
    assert demo.page.evaluate("document.activeElement.className") == "hit-title"
