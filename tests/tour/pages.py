"""What steps do on the pages of Airflow more than once: forms, questions, states, lists."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from playwright.sync_api import FrameLocator, Locator, Page, expect

RUN = "2023-06-01"
NAME = "tour"
"""Name of the run that is triggered; without one Airflow makes it from the time of the click."""

NEIGHBOURS = 4
LISTED = re.compile(r"^(No Dag Runs found|\d+ Dag Runs?)$")
"""What stands above a list of runs when it is complete."""

MAX_BYTES = 300_000
"""A picture is to be looked at in a repository."""

REPORT_PICTURES = 4
"""Map, pair count, sizes of the clusters, cost; with more, where there are earlier runs."""

RUN_SECONDS = 3600.0
"""How long one run may take: nine Spark jobs one after the other, on a machine that may be busy."""


class Tour(NamedTuple):
    """What every step knows.

    Parameters
    ----------
    page : the one page of the browser.
    base : address of Airflow, without a slash at the end.
    password : that of ``admin``.
    pictures : folder of the screenshots.
    months : first days of the months to back-fill, as ISO dates.
    full_months : those of them that have a snapshot; the runs of the others are skipped.
    """

    page: Page
    base: str
    password: str
    pictures: Path
    months: list[str]
    full_months: list[str]

    def look(self, name: str, part: Locator | None = None) -> None:
        """Take a picture of what the window, or a part of it, shows when nothing moves any more."""
        self.page.wait_for_timeout(1500)
        file = self.pictures / f"{name}.png"
        (part or self.page).screenshot(path=file, animations="disabled")
        size = file.stat().st_size
        assert size < MAX_BYTES, f"{file} has {size} bytes, more than {MAX_BYTES}"

    def go(self, path: str) -> None:
        """Open a page of Airflow by its address."""
        self.page.goto(self.base + path)


def open_form_of_run(tour: Tour) -> None:
    """Open the form that triggers a run, and fill in date and name of the run."""
    open_form(tour)
    tour.page.get_by_text(re.compile(r", 20\d\d \d\d:\d\d$")).click()
    pick(tour.page, RUN)
    unfold(tour.page, "Advanced Options", "dagRunId").fill(NAME)


def open_form(tour: Tour) -> None:
    tour.go("/dags/navaids")
    tour.page.get_by_test_id("trigger-dag-button").click()
    expect(tour.page.get_by_text("Run this Dag for a range of dates")).to_be_visible()


def open_back_fill(tour: Tour) -> None:
    page = tour.page
    open_form(tour)
    page.get_by_text("Run this Dag for a range of dates").click()
    for month in (tour.months[0], tour.months[-1]):
        page.get_by_text("Select date and time").first.click()
        pick(page, month)
    expect(page.get_by_text(f"{len(tour.months)} runs will be triggered.")).to_be_visible()


def pick(page: Page, day: str) -> None:
    """Write midnight of a day into the calendar that is open, and close it."""
    date, clock = page.get_by_placeholder("YYYY/MM/DD"), page.get_by_placeholder("HH:mm")
    date.fill(day.replace("-", "/"))
    clock.fill("00:00")
    clock.press("Escape")
    expect(date).to_have_count(0)


def unfold(page: Page, section: str, field: str) -> Locator:
    """Open a section of the form and find a field of it."""
    page.get_by_role("button", name=section).click()
    found = page.locator(f"[name={field}]")
    expect(found).to_be_visible()
    return found


def state_of(page: Page) -> Locator:
    """The state of the run, or task, that the page is about."""
    return page.get_by_test_id("header-card").get_by_test_id("state-badge").first


def text_of(place: Locator) -> str:
    return place.first.inner_text().strip() if place.count() else ""


def state_is_not(page: Page, state: str) -> None:
    assert text_of(state_of(page)) != state, f"the run's state is {state}"


def no_run_failed(tour: Tour) -> Callable[[], None]:
    """Look at the list of runs, so that nobody waits for what a failed run will not do."""

    def look() -> None:
        tour.go("/dags/navaids/runs?state=failed")
        found = tour.page.get_by_text(LISTED)
        expect(found).to_have_text("No Dag Runs found")

    return look


def question(tour: Tour, run: str) -> Locator:
    """The question of a run about its eps: a link of the page Required Actions, which is opened."""
    page = tour.page
    if not page.url.endswith("/required_actions"):
        tour.go("/required_actions")
        listed = re.compile(r"^(No Required Actions found|\d+ Required Actions?)$")
        expect(page.get_by_text(listed)).to_be_visible()
    asks = re.compile(rf"^Join navaids, run {run}, with eps [\d.]+\?$")
    return page.get_by_role("link", name=asks)


def await_question(tour: Tour, run: str) -> Locator:
    """Wait until a run asks about its eps; return the link to its question."""
    wait_until(
        tour,
        f"question about the eps of {run}",
        lambda: question(tour, run).count() > 0,
        no_run_failed(tour),
    )
    return question(tour, run)


def press_approve(page: Page) -> None:
    page.get_by_role("button", name="Approve").click()
    expect(state_of(page)).not_to_have_text("Awaiting Input")


def wait_until(tour: Tour, what: str, is_there: Callable[[], bool], is_well: Callable[[], None]) -> None:
    """Look again and again, until it is there, something is not well, or a run would have ended.

    In between no page is open: one of a run that is under way takes more than a core.
    """
    end = time.monotonic() + RUN_SECONDS
    while not is_there():
        is_well()
        assert time.monotonic() < end, f"not within {RUN_SECONDS:g} s: {what}"
        tour.page.goto("about:blank")
        tour.page.wait_for_timeout(15_000)  # an opened page costs seconds of CPU


def expect_report(frame: FrameLocator) -> None:
    expect(frame.get_by_role("heading", name="Navigation aids of the world")).to_be_visible()
    why = f"was chosen so that a point has {NEIGHBOURS} neighbours"
    expect(frame.get_by_text(why)).to_be_visible()  # as the form said
    pictures = frame.locator("svg[role=img]")
    expect(pictures.nth(REPORT_PICTURES - 1)).to_be_visible()
    for picture in pictures.all():
        box = picture.bounding_box()
        assert box is not None, "a picture of the report is not shown"
        assert min(box["width"], box["height"]) > 100, f"a picture of the report is hardly seen: {box}"


def expect_runs(tour: Tour, runs: list[str]) -> None:
    """Open the page Reports; its rows are these runs, each with numbers and with checks that hold."""
    tour.go("/")
    tour.page.get_by_role("link", name="Reports").click()
    rows = tour.page.frame_locator("iframe").locator("tbody tr")
    expect(rows).to_have_count(len(runs))
    for row, run in zip(rows.all(), runs, strict=True):
        expect(row).to_have_text(
            re.compile(
                rf"{run}\s*[\d.,]+ km\s*[\d,]+\s*[\d,]+\s*[\d,]+\s*[\d.]+ %\s*\d+ of \d+ expectations hold"
            )
        )
