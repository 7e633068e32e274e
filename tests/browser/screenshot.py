"""Takes README's picture of the playground: python -m tests.browser.screenshot [FILE]."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from playwright.sync_api import Page, ViewportSize, expect, sync_playwright

from service.embedding import load_embedder
from service.settings import Settings
from tests.browser.site import MODEL_DIM, fill_demo, find_browser, serve
from tests.conftest import NEWEST
from tests.live_database import run_server

PICTURE = Path("docs/images/playground.png")
QUESTION = "How does row-level security keep tenants apart?"
WARMING = "What does the confidence gate do?"
SIZE: ViewportSize = {"width": 1280, "height": 1060}
LARGEST = 300_000


def take_picture(site: str, file: Path) -> None:
    """Ask a question of the demo, and keep what is shown."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=find_browser(), chromium_sandbox=os.geteuid() != 0
        )
        page = browser.new_page(
            viewport={"width": SIZE["width"], "height": SIZE["height"]},
            color_scheme="light",
            reduced_motion="reduce",
        )
        page.goto(site)
        _ask(page, WARMING)
        page.get_by_role("slider", name="Token budget").fill("800")
        _ask(page, QUESTION)
        expect(page.locator(".drops")).to_be_visible()
        page.evaluate("scrollTo(0, 0); document.querySelector('.rail').scrollTo(0, 0)")
        page.evaluate("document.activeElement.blur()")
        page.screenshot(path=file)
        browser.close()


def _ask(page: Page, question: str) -> None:
    page.get_by_role("button", name=question).click()
    expect(page.locator(".sources")).to_be_visible(timeout=60_000)
    expect(page.locator("#graph circle").first).to_be_visible()


def main() -> None:
    """Start everything, take the picture, and say how large it is."""
    if find_browser() is None:
        sys.exit("There is no browser here: install chromium (apt-get install chromium).")
    file = Path(sys.argv[1]) if len(sys.argv) > 1 else PICTURE
    file.parent.mkdir(parents=True, exist_ok=True)
    embedder = load_embedder(Settings().embedding_model)
    with run_server(NEWEST) as server, server.open_database(embedding_dim=MODEL_DIM) as database:
        fill_demo(database, embedder)
        with serve(database, embedder, demo=True) as site:
            take_picture(site, file)
    size = file.stat().st_size
    print(f"{file}: {size} bytes")
    if size > LARGEST:
        sys.exit(f"The picture is larger than {LARGEST} bytes.")


if __name__ == "__main__":
    main()
