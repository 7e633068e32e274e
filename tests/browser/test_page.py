"""The page itself: on a phone, in the dark, for those who listen, and with texts that attack it."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import HOSTILE, OpenPage

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("browser")]
QUESTION = "How does row-level security keep tenants apart?"
PHONE = {"width": 360, "height": 740}
CONTROLS = {
    *("button", "link", "searchbox", "textbox", "switch", "checkbox", "slider", "radio"),
    *("radiogroup", "dialog", "img", "region", "complementary"),
}
# Every text that is seen, with its colour and the one behind it.
COLOURS = """() => {
  const behind = (element) => {
    for (let each = element; each; each = each.parentElement) {
      const colour = getComputedStyle(each).backgroundColor;
      if (colour !== 'rgba(0, 0, 0, 0)') return colour;
    }
    return 'rgb(255, 255, 255)';
  };
  return [...document.querySelectorAll('body *')]
    .filter((element) => element.checkVisibility() && !element.closest('svg, .unseen, .skip, h1')
      && [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim()))
    .map((element) => [element.textContent.slice(0, 40), getComputedStyle(element).color,
      behind(element)]);
}"""


def luminance(colour: str) -> float:
    channels = [int(part) / 255 for part in colour[4:-1].split(",")[:3]]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_stands_out_from_what_is_behind_it(
    open_page: OpenPage, demo_site: str, scheme: str
):
    visit = open_page(demo_site, color_scheme=scheme, reduced_motion="reduce")
    visit.ask(QUESTION)
    visit.page.locator(".hit-title").first.click()
    texts: list[list[str]] = visit.page.evaluate(COLOURS)
    weak = [(text, contrast(ink, paper)) for text, ink, paper in texts]
    assert len(texts) > 60
    assert [each for each in weak if each[1] < 4.5] == []


def test_the_dark_scheme_is_dark(open_page: OpenPage, demo_site: str):
    background = "getComputedStyle(document.body).backgroundColor"
    dark = open_page(demo_site, color_scheme="dark").page.evaluate(background)
    light = open_page(demo_site, color_scheme="light").page.evaluate(background)
    assert luminance(dark) < 0.02
    assert luminance(light) > 0.9


@pytest.mark.parametrize("compare", [False, True])
def test_nothing_is_wider_than_a_phone(open_page: OpenPage, demo_site: str, compare: bool):
    visit = open_page(demo_site, viewport=PHONE, has_touch=True)
    page = visit.page
    visit.ask(QUESTION)
    expect(page.get_by_role("switch", name="PageRank")).to_be_hidden()
    page.get_by_role("button", name="Show").click()
    page.get_by_role("switch", name="PageRank").click()
    if compare:
        page.get_by_role("switch", name="Compare A | B").click()
        expect(page.locator(".column")).to_have_count(2)
    visit.wait()
    assert page.evaluate("document.documentElement.scrollWidth") == PHONE["width"]
    expect(page.locator(".hit").first).to_be_visible()


def test_every_control_has_a_name(open_page: OpenPage, demo_site: str):
    visit = open_page(demo_site)
    visit.ask(QUESTION)
    visit.page.get_by_role("switch", name="Compare A | B").click()
    visit.page.locator("label", has=visit.page.get_by_role("radio", name="MMR")).click()
    visit.wait()
    client = visit.page.context.new_cdp_session(visit.page)
    tree: list[dict[str, Any]] = client.send("Accessibility.getFullAXTree")["nodes"]
    shown = [
        (node["role"]["value"], node.get("name", {}).get("value", "").strip())
        for node in tree
        if not node["ignored"]
    ]
    nameless = [role for role, name in shown if role in CONTROLS and not name]
    assert nameless == []
    roles = [role for role, _ in shown]
    assert {"searchbox", "switch", "slider", "radio", "main", "status"} <= set(roles)
    assert roles.count("switch") >= 8


def test_a_control_that_has_the_focus_shows_it(open_page: OpenPage, demo_site: str):
    visit = open_page(demo_site)
    visit.ask(QUESTION)
    page = visit.page
    seen = set()
    for _ in range(40):
        page.keyboard.press("Tab")
        name, outline = page.evaluate(
            "(() => { const element = document.activeElement;"
            " const shown = element.matches('.choice input')"
            " ? element.nextElementSibling : element;"
            " return [element.id || element.textContent, getComputedStyle(shown).outlineStyle]"
            "})()"
        )
        assert outline != "none", name
        seen.add(name)
    assert len(seen) > 25


def test_those_who_listen_are_told_what_was_found(open_page: OpenPage, demo_site: str):
    visit = open_page(demo_site)
    visit.ask(QUESTION)
    said = re.compile(r"8 results\.|Answer with \d+ citations\.")
    expect(visit.page.get_by_role("status")).to_have_text(said)


def test_motion_is_left_out_where_it_is_unwanted(open_page: OpenPage, demo_site: str):
    page = open_page(demo_site, reduced_motion="reduce").page
    moving = "getComputedStyle(document.querySelector('.ask')).transitionDuration"
    assert page.evaluate(moving) == "0s"


def test_the_text_of_a_document_stays_text(open_page: OpenPage, locked_site: str, planets_key: str):
    visit = open_page(locked_site)
    page = visit.page
    page.get_by_label("Key", exact=True).fill(planets_key)
    page.get_by_role("button", name="Use key").click()
    expect(page.get_by_role("dialog")).to_be_hidden()
    visit.ask("Which planet has rings of ice?")
    page.locator(".hit", has_text="Saturn").get_by_role("button", name="Saturn").click()
    assert page.locator(".hit", has_text="Saturn").locator(".full").text_content() == HOSTILE
    assert page.locator("main img, main script").count() == 0
    assert page.title() == "ContextForge playground"
    assert not any("planted" in request.url for request in visit.requests)


def test_the_policy_lets_nothing_but_its_own_files_run(open_page: OpenPage, demo_site: str):
    visit = open_page(demo_site)
    page = visit.page
    refused = page.evaluate(
        "(() => { try { document.body.innerHTML = '<b>x</b>'; return 'done' }"
        " catch (error) { return error.name } })()"
    )
    assert refused == "TypeError"
    assert ["TrustedHTML" in error for error in visit.errors] == [True]
    visit.errors.clear()
    policy = page.request.get(demo_site).headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy
