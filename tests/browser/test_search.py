"""Searching in the playground: results with their reasons, settings, two settings side by side."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from playwright.sync_api import Locator, Request, Route, expect

from tests.browser.conftest import OpenPage, Visit

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("browser")]
QUESTION = "How does row-level security keep tenants apart?"


@pytest.fixture
def demo(open_page: OpenPage, demo_site: str) -> Visit:
    return open_page(demo_site)


def bodies(visit: Visit, path: str) -> list[dict[str, Any]]:
    """What was sent to an endpoint, in order."""
    return [read_body(each) for each in visit.requests if each.url.endswith(path)]


def read_body(request: Request) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(request.post_data or "{}")
    return body


def width(bar: Locator) -> float:
    """How much of a bar is filled, 0 to 1."""
    return float(bar.evaluate("bar => bar.style.getPropertyValue('--share')"))


def test_an_example_question_shows_results_without_a_key(demo: Visit):
    demo.page.get_by_role("button", name=QUESTION).click()
    demo.wait()
    assert len(demo.titles()) == 8
    assert demo.page.get_by_role("searchbox").input_value() == QUESTION
    assert "Roles and policies" in demo.titles()


def test_a_result_shows_band_path_and_the_words_that_were_searched_for(demo: Visit):
    demo.ask(QUESTION)
    hit = demo.page.locator(".hit", has=demo.page.get_by_role("button", name="Roles and policies"))
    expect(hit.locator(".band")).to_have_text(re.compile(r"^(high|good|partial|low) [01]\.\d\d$"))
    expect(hit.locator(".path")).to_contain_text("SQL")
    marked = {text.lower() for text in hit.locator(".snippet mark").all_inner_texts()}
    assert marked & {"row", "level", "security", "tenant", "tenants"}
    assert not marked & {"the", "how", "does"}


def test_the_bars_are_as_long_as_the_scores_they_stand_for(demo: Visit):
    with demo.page.expect_response("**/v1/search") as caught:
        demo.ask(QUESTION)
    hits = caught.value.json()["hits"]
    largest = max(hit["scores"]["bm25"] for hit in hits)
    best = max(hit["scores"]["final"] for hit in hits)
    for place, hit in enumerate(hits):
        card, scores = demo.page.locator(".hit").nth(place), hit["scores"]
        expected = {
            "bm25": scores["bm25"] / largest,
            "vector": scores["vector"],
            "graph": scores["graph"],
            "final": scores["final"] / best,
        }
        shown = {name: width(card.locator(f".score.{name} .bar")) for name in expected}
        assert shown == pytest.approx(expected, abs=1e-6)


def test_a_result_opens_to_its_whole_text_and_what_each_term_adds(demo: Visit):
    with demo.page.expect_response("**/v1/search") as caught:
        demo.ask(QUESTION)
    first = caught.value.json()["hits"][0]
    title = demo.page.locator(".hit-title").first
    title.click()
    expect(title).to_have_attribute("aria-expanded", "true")
    full = demo.page.locator(".hit").first.locator(".full")
    assert full.text_content() == first["node"]["content"]
    terms = demo.page.locator(".hit").first.locator(".terms span").all_inner_texts()
    assert {text.split()[0] for text in terms} == set(first["terms"])


def test_the_keyboard_leads_from_the_question_through_the_results_and_back(demo: Visit):
    demo.ask(QUESTION)
    page = demo.page
    titles = page.locator(".hit-title")
    page.keyboard.press("ArrowDown")
    expect(titles.nth(0)).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(titles.nth(1)).to_be_focused()
    page.keyboard.press("Enter")
    expect(titles.nth(1)).to_have_attribute("aria-expanded", "true")
    page.keyboard.press("Escape")
    expect(titles.nth(1)).to_have_attribute("aria-expanded", "false")
    page.keyboard.press("/")
    expect(page.get_by_role("searchbox")).to_be_focused()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowUp")
    expect(page.get_by_role("searchbox")).to_be_focused()


def test_what_was_not_touched_is_not_sent(demo: Visit):
    demo.ask(QUESTION)
    assert [body["options"] for body in bodies(demo, "/v1/search")] == [{}]
    assert "token_budget" not in bodies(demo, "/v1/context")[0]


def test_a_weight_takes_effect_at_once_and_turns_adaptive_weights_off(demo: Visit):
    demo.ask(QUESTION)
    before = demo.titles()
    adaptive = demo.page.get_by_role("switch", name="Adaptive weights")
    expect(adaptive).to_be_checked()
    with demo.page.expect_response("**/v1/search") as caught:
        demo.page.get_by_role("slider", name="Vector weight").fill("0")
    assert caught.value.json()["mode"] == "keywords"
    expect(demo.page.locator(".summary")).to_contain_text("keywords only: vector_weight is 0")
    expect(adaptive).not_to_be_checked()
    assert demo.titles() != before


def test_every_switch_reaches_the_search(demo: Visit):
    demo.ask(QUESTION)
    switches: dict[str, dict[str, object]] = {
        "Walk along links": {"walk_weight": 0},
        "PageRank": {"graph_prior_weight": 0.3},
        "Confidence gate": {"confidence_threshold": 0},
        "Quality filter": {"quality_threshold": 0},
        "Several documents": {"multidoc": False},
        "Adaptive weights": {"adaptive_weights": False},
    }
    expected: dict[str, object] = {}
    for name, option in switches.items():
        with demo.page.expect_response("**/v1/search") as caught:
            demo.page.get_by_role("switch", name=name).click()
        expected |= option
        assert caught.value.status == 200
        assert read_body(caught.value.request)["options"] == expected
    with demo.page.expect_response("**/v1/search") as caught:
        demo.page.get_by_role("button", name="Reset").click()
    assert read_body(caught.value.request)["options"] == {}


def test_only_the_last_of_many_changes_is_shown(demo: Visit):
    demo.ask(QUESTION)
    slider = demo.page.get_by_role("slider", name="Results")
    for value in (20, 15, 10, 3):
        slider.fill(str(value))
    expect(demo.page.locator(".hit")).to_have_count(3)
    demo.wait()
    assert len(demo.titles()) == 3
    assert len(bodies(demo, "/v1/search")) < 5


def test_an_answer_that_comes_too_late_is_called_off(demo: Visit):
    demo.ask(QUESTION)
    stalled: list[Route] = []
    page = demo.page

    def stall(route: Route) -> None:
        stalled.append(route)

    page.route("**/v1/search", stall, times=1)
    page.get_by_role("slider", name="Results").fill("2")
    expect(page.locator(".column")).to_have_attribute("aria-busy", "true")
    with page.expect_event("requestfailed") as caught:
        page.get_by_role("slider", name="Results").fill("5")
    assert caught.value.url.endswith("/v1/search")
    expect(page.locator(".hit")).to_have_count(5)
    assert len(stalled) == 1


def test_two_settings_stand_side_by_side_with_what_moved(demo: Visit):
    demo.ask(QUESTION)
    page = demo.page
    page.get_by_role("switch", name="Compare A | B").click()
    expect(page.locator("#difference")).to_have_text("A and B agree")
    page.get_by_role("slider", name="Vector weight").fill("0")
    expect(page.locator("#difference")).to_have_text(re.compile("lost"))
    first, second = demo.titles("A"), demo.titles("B")
    assert first != second
    marks = page.locator(".column[data-side=B] .mark").all_inner_texts()
    assert len(marks) == len(second)
    nodes = {
        side: page.locator(f".column[data-side={side}] .hit").evaluate_all(
            "cards => cards.map(card => card.dataset.node)"
        )
        for side in "AB"
    }
    for node, mark in zip(nodes["B"], marks, strict=True):
        assert mark == describe_move(nodes["A"], nodes["B"], node)
    lost = page.locator(".column[data-side=A] .mark.lost")
    expect(lost).to_have_count(len(set(nodes["A"]) - set(nodes["B"])))


def describe_move(before: list[str], after: list[str], node: str) -> str:
    if node not in before:
        return "new"
    up = before.index(node) - after.index(node)
    return "=" if up == 0 else f"{'↑' if up > 0 else '↓'}{abs(up)}"


def test_a_question_far_from_everything_says_so_and_the_gate_can_be_opened(demo: Visit):
    page = demo.page
    demo.ask("Who won the chess olympiad of 1972 in Skopje?")
    expect(page.locator(".notice")).to_contain_text("below the gate")
    expect(page.locator("#context-body")).to_have_text("Nothing to pack.")
    with page.expect_response("**/v1/search"):
        page.get_by_role("slider", name="Confidence gate: amount").fill("1")
    expect(page.locator("#columns")).to_contain_text("Nothing is close enough to the question.")
    page.get_by_role("button", name="Turn the gate off").click()
    expect(page.locator(".hit").first).to_be_visible()
    expect(page.get_by_role("switch", name="Confidence gate")).not_to_be_checked()
    expect(page.locator(".block").first).to_be_visible()


def test_a_service_that_is_gone_is_told_in_words(demo: Visit):
    demo.page.route("**/v1/**", lambda route: route.abort())
    demo.ask(QUESTION)
    expect(demo.page.locator("#columns .problem")).to_contain_text("The service does not answer.")
    assert demo.page.locator(".skeleton:visible").count() == 0


def test_an_opened_result_is_counted_once_and_can_be_rated(demo: Visit):
    with demo.page.expect_response("**/v1/search") as caught:
        demo.ask(QUESTION)
    found = caught.value.json()
    hit = demo.page.locator(".hit").first
    title = hit.locator(".hit-title")
    with demo.page.expect_response("**/v1/feedback") as told:
        title.click()
    assert told.value.status == 201
    title.click()
    title.click()
    helpful = hit.get_by_role("button", name="Helpful", exact=True)
    with demo.page.expect_response("**/v1/feedback") as rated:
        helpful.click()
    assert rated.value.json()["position"] == 1
    expect(helpful).to_have_attribute("aria-pressed", "true")
    hit.get_by_role("button", name="Not helpful").click(force=True)
    node_id = found["hits"][0]["node"]["node_id"]
    about = {"trace_id": found["trace_id"], "node_id": node_id}
    assert bodies(demo, "/v1/feedback") == [
        {**about, "signal": "clicked"},
        {**about, "signal": "helpful"},
    ]
