"""The key: asked for, tried, kept in memory only."""

from __future__ import annotations

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.conftest import OpenPage, Visit

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("browser")]


@pytest.fixture
def locked(open_page: OpenPage, locked_site: str) -> Visit:
    return open_page(locked_site)


def dialog(visit: Visit) -> Locator:
    return visit.page.get_by_role("dialog", name="API key")


def give_key(visit: Visit, key: str, tenant: str = "") -> None:
    visit.page.get_by_label("Key", exact=True).fill(key)
    visit.page.get_by_label("Tenant").fill(tenant)
    visit.page.get_by_role("button", name="Use key").click()


def enter(visit: Visit, key: str) -> None:
    give_key(visit, key)
    expect(dialog(visit)).to_be_hidden()


def test_the_page_asks_for_a_key_and_shows_no_examples_of_others(locked: Visit):
    expect(dialog(locked)).to_be_visible()
    expect(locked.page.get_by_label("Key", exact=True)).to_be_focused()
    assert locked.page.locator(".example").count() == 0


def test_a_wrong_key_is_refused_in_words_and_can_be_corrected(locked: Visit, planets_key: str):
    give_key(locked, "cf_wrong")
    expect(dialog(locked)).to_contain_text("This API key is unknown, expired or revoked.")
    enter(locked, planets_key)
    locked.ask("Which planet is red?")
    assert locked.titles()[0] == "Mars"
    assert ["401" in text for text in locked.refused] == [True]


def test_a_tenant_the_key_does_not_open_is_refused(locked: Visit, planets_key: str):
    give_key(locked, planets_key, tenant="demo")
    expect(dialog(locked)).to_contain_text("This key does not open the tenant")
    assert ["403" in text for text in locked.refused] == [True]


def test_a_question_without_a_key_asks_for_it_and_goes_on(locked: Visit, planets_key: str):
    locked.page.get_by_role("button", name="Cancel").click()
    locked.page.get_by_role("searchbox").fill("Which planet is red?")
    locked.page.keyboard.press("Enter")
    expect(dialog(locked)).to_be_visible()
    enter(locked, planets_key)
    locked.wait()
    assert locked.titles()[0] == "Mars"
    assert all("401" in text for text in locked.refused)


def test_a_key_sees_its_own_tenant_and_no_other(locked: Visit, planets_key: str):
    enter(locked, planets_key)
    locked.ask("How does row-level security keep tenants apart?")
    assert set(locked.titles()) <= {"Mercury", "Venus", "Mars", "Saturn"}


def test_the_key_is_nowhere_but_in_memory(locked: Visit, planets_key: str):
    enter(locked, planets_key)
    locked.ask("Which planet is red?")
    page = locked.page
    kept = page.evaluate(
        "JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie, location.href,"
        " document.documentElement.outerHTML, [...document.querySelectorAll('input')]"
        ".map(input => input.value)])"
    )
    assert planets_key not in kept
    assert page.context.cookies() == []
    assert all(planets_key not in request.url for request in locked.requests)
    page.reload()
    expect(dialog(locked)).to_be_visible()
