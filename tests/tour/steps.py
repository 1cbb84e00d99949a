"""The steps of the tour in one file, because they are one story: what a person does, sees, and a picture.

A page is operated by what it shows (labels, texts, roles), by Airflow's own marks for tests where it shows
nothing. A step that does not see in time what it waits for fails with what that was.
"""

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
TAKE_FIELDS = "Override parameters on existing runs"
"""Without it a back-fill takes nothing of the form's fields, for new runs, too."""

LISTED = re.compile(r"^(No Dag Runs found|\d+ Dag Runs?)$")
"""What stands above a list of runs when it is complete."""

MOST_BYTES = 300_000
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
        assert size < MOST_BYTES, f"{file} has {size} bytes, more than {MOST_BYTES}"

    def go(self, path: str) -> None:
        """Open a page of Airflow by its address."""
        self.page.goto(self.base + path)


def ask_for_login(tour: Tour) -> None:
    """Nobody comes in without the password."""
    page = tour.page
    tour.go("/dags")
    page.wait_for_url("**/auth/login**")
    page.get_by_label("Username").fill("admin")
    page.get_by_label("Password").fill("a guess")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_text("Invalid credentials")).to_be_visible()
    tour.look("01-login-refused")


def log_in(tour: Tour) -> None:
    """The password opens the page."""
    page = tour.page
    tour.go("/")
    page.wait_for_url("**/auth/login**")
    page.get_by_label("Username").fill("admin")
    page.get_by_label("Password").fill(tour.password)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_text("Dag Processor")).to_be_visible()
    expect(page.get_by_role("link", name="Reports")).to_be_visible()
    tour.look("02-home")


def list_dags(tour: Tour) -> None:
    """The list of DAGs has the data set."""
    page = tour.page
    page.get_by_test_id("nav-dags-link").click()
    expect(page.get_by_text("1 Dag", exact=True)).to_be_visible()
    expect(page.get_by_role("link", name="navaids", exact=True).first).to_be_visible()
    tour.look("03-dags")


def refuse_bad_parameter(tour: Tour) -> None:
    """A run with eps -5 is refused, and the form says why."""
    page = tour.page
    _open_form_of_run(tour)
    _unfold(page, "Distance threshold", "element_eps").fill("-5")
    page.get_by_test_id("trigger-dag-submit").click()
    refusal = page.get_by_text("-5 is less than or equal to the minimum of 0")
    expect(refusal).to_be_visible()
    expect(page.get_by_text("Failed to Trigger Dag").first).to_be_visible()
    refusal.scroll_into_view_if_needed()
    tour.look("04-bad-parameter")
    tour.go("/dags/navaids/runs")
    expect(page.get_by_text(LISTED)).to_be_visible()
    expect(page.get_by_role("link", name=NAME, exact=True)).to_have_count(0)


def trigger(tour: Tour) -> None:
    """A run with a good parameter starts."""
    page = tour.page
    _open_form_of_run(tour)
    neighbours = _unfold(page, "Distance threshold", "element_neighbours")
    neighbours.fill(str(NEIGHBOURS))
    neighbours.scroll_into_view_if_needed()
    tour.look("05-good-parameter")
    page.get_by_test_id("trigger-dag-submit").click()
    page.wait_for_url(f"**/dags/navaids/runs/{NAME}")
    expect(_state(page)).to_have_text(re.compile("Queued|Running"))
    expect(page.get_by_text(f"{RUN} 00:00:00")).to_be_visible()
    tour.look("06-started")


def approve(tour: Tour) -> None:
    """The run asks whether eps is right; a person approves."""
    question = _await_question(tour, RUN)
    tour.look("07-required-action")
    question.click()
    expect(tour.page.get_by_text("pairs expected")).to_be_visible()
    tour.look("08-approve-eps")
    _approve(tour.page)


def watch(tour: Tour) -> None:
    """The run goes on, task by task, to its end."""
    page = tour.page
    cell = page.get_by_role("row").filter(has_text="replicate").get_by_test_id("state-badge")

    def is_at_work() -> bool:
        tour.go(f"/dags/navaids/runs/{NAME}")
        expect(cell.first).to_be_visible()
        return _text(cell) in ("Running", "Success")

    def has_ended_well() -> bool:
        tour.go(f"/dags/navaids/runs/{NAME}")
        expect(_state(page)).to_be_visible()
        return _text(_state(page)) == "Success"

    _await(tour, "replicate at work", is_at_work, lambda: _state_is_not(page, "Failed"))
    page.get_by_label("Show Gantt").first.click()
    tour.look("09-running")
    _await(tour, "the run's success", has_ended_well, lambda: _state_is_not(page, "Failed"))
    tour.look("10-success")


def open_report(tour: Tour) -> None:
    """The run's tab Report has its numbers and pictures, on a telephone, too."""
    page = tour.page
    tour.go(f"/dags/navaids/runs/{NAME}")
    page.get_by_test_id("grid-view-button").click()
    page.get_by_role("link", name="Report", exact=True).click()
    frame = page.frame_locator("iframe")
    _expect_report(frame)
    tour.look("11-report")
    frame.get_by_role("heading", name="Map", exact=True).evaluate("heading => heading.scrollIntoView()")
    tour.look("12-report-map", page.locator("iframe"))
    telephone = page.context.browser.new_context(
        viewport={"width": 390, "height": 844},
        device_scale_factor=1,
        storage_state=page.context.storage_state(),
    )
    small = telephone.new_page()
    small.set_default_timeout(120_000)
    small.goto(f"{tour.base}/epsjoin/reports/navaids/{RUN}/report.html")
    expect(small.get_by_role("heading", name="Navigation aids of the world")).to_be_visible()
    too_wide = "document.documentElement.scrollWidth > document.documentElement.clientWidth"
    assert not small.evaluate(too_wide), "the report is wider than a telephone"
    tour._replace(page=small).look("13-report-390")
    telephone.close()


def list_reports(tour: Tour) -> None:
    """The page Reports lists the run with eps, pairs, clusters and checks."""
    _expect_runs(tour, [RUN])
    tour.look("14-reports")


def refuse_bad_back_fill(tour: Tour) -> None:
    """A back-fill with eps -5 is refused, and the form says why."""
    page = tour.page
    _open_back_fill(tour)
    _unfold(page, "Distance threshold", "element_eps").fill("-5")
    page.get_by_text(TAKE_FIELDS, exact=True).click()
    page.get_by_role("button", name="Run Backfill").click()
    refusal = page.get_by_text("-5 is less than or equal to the minimum of 0").first
    expect(refusal).to_be_visible()
    refusal.scroll_into_view_if_needed()
    tour.look("15-bad-back-fill")


def back_fill(tour: Tour) -> None:
    """A back-fill of some months with a good parameter starts from the form."""
    page = tour.page
    _open_back_fill(tour)
    neighbours = _unfold(page, "Distance threshold", "element_neighbours")
    neighbours.fill(str(NEIGHBOURS))
    page.get_by_text(TAKE_FIELDS, exact=True).click()
    page.get_by_text("Date Range", exact=True).scroll_into_view_if_needed()
    tour.look("16-back-fill")
    page.get_by_role("button", name="Run Backfill").click()
    expect(page.get_by_text("Backfill in progress")).to_be_visible()


def watch_back_fill(tour: Tour) -> None:
    """Its runs, and no others, end well, one after the other; each asks about its eps."""
    page = tour.page
    tour.go("/dags/navaids/backfills")
    expect(page.get_by_text("1 Backfill", exact=True)).to_be_visible()
    expect(page.get_by_text(f"{tour.months[0]} 00:00:00").last).to_be_visible()
    tour.look("17-back-fill-runs")
    for month in tour.full_months:
        _await_question(tour, month).click()
        _approve(page)
    rows = page.get_by_role("row").filter(has_text="backfill__")
    done = rows.filter(has=page.get_by_test_id("state-badge").filter(has_text="Success"))

    def all_done() -> bool:
        tour.go("/dags/navaids/runs")
        expect(rows.first).to_be_visible()
        return done.count() == len(tour.months)

    _await(tour, "the success of all runs of the back-fill", all_done, _no_run_failed(tour))
    tour.look("18-back-filled")


def see_results(tour: Tour) -> None:
    """The results of all runs stand side by side, and each opens."""
    _expect_runs(tour, sorted([RUN, *tour.full_months], reverse=True))
    tour.look("19-results")
    frame = tour.page.frame_locator("iframe")
    frame.get_by_role("link", name=tour.full_months[-1]).click()
    _expect_report(frame)
    tour.look("20-result-of-a-month")


STEPS: tuple[Callable[[Tour], None], ...] = (
    ask_for_login,
    log_in,
    list_dags,
    refuse_bad_parameter,
    trigger,
    approve,
    watch,
    open_report,
    list_reports,
    refuse_bad_back_fill,
    back_fill,
    watch_back_fill,
    see_results,
)


def _open_form_of_run(tour: Tour) -> None:
    """Open the form that triggers a run, and fill in date and name of the run."""
    _open_form(tour)
    tour.page.get_by_text(re.compile(r", 20\d\d \d\d:\d\d$")).click()
    _pick(tour.page, RUN)
    _unfold(tour.page, "Advanced Options", "dagRunId").fill(NAME)


def _open_form(tour: Tour) -> None:
    tour.go("/dags/navaids")
    tour.page.get_by_test_id("trigger-dag-button").click()
    expect(tour.page.get_by_text("Run this Dag for a range of dates")).to_be_visible()


def _open_back_fill(tour: Tour) -> None:
    page = tour.page
    _open_form(tour)
    page.get_by_text("Run this Dag for a range of dates").click()
    for month in (tour.months[0], tour.months[-1]):
        page.get_by_text("Select date and time").first.click()
        _pick(page, month)
    expect(page.get_by_text(f"{len(tour.months)} runs will be triggered.")).to_be_visible()


def _pick(page: Page, day: str) -> None:
    """Write midnight of a day into the calendar that is open, and close it."""
    date, clock = page.get_by_placeholder("YYYY/MM/DD"), page.get_by_placeholder("HH:mm")
    date.fill(day.replace("-", "/"))
    clock.fill("00:00")
    clock.press("Escape")
    expect(date).to_have_count(0)


def _unfold(page: Page, section: str, field: str) -> Locator:
    """Open a section of the form and find a field of it."""
    page.get_by_role("button", name=section).click()
    found = page.locator(f"[name={field}]")
    expect(found).to_be_visible()
    return found


def _state(page: Page) -> Locator:
    """The state of the run, or task, that the page is about."""
    return page.get_by_test_id("header-card").get_by_test_id("state-badge").first


def _text(place: Locator) -> str:
    return place.first.inner_text().strip() if place.count() else ""


def _state_is_not(page: Page, state: str) -> None:
    assert _text(_state(page)) != state, f"the run's state is {state}"


def _no_run_failed(tour: Tour) -> Callable[[], None]:
    """Look at the list of runs, so that nobody waits for what a failed run will not do."""

    def look() -> None:
        tour.go("/dags/navaids/runs?state=failed")
        found = tour.page.get_by_text(LISTED)
        expect(found).to_have_text("No Dag Runs found")

    return look


def _question(tour: Tour, run: str) -> Locator:
    """The question of a run about its eps: a link of the page Required Actions, which is opened."""
    page = tour.page
    if not page.url.endswith("/required_actions"):
        tour.go("/required_actions")
        listed = re.compile(r"^(No Required Actions found|\d+ Required Actions?)$")
        expect(page.get_by_text(listed)).to_be_visible()
    asks = re.compile(rf"^Join navaids, run {run}, with eps [\d.]+\?$")
    return page.get_by_role("link", name=asks)


def _await_question(tour: Tour, run: str) -> Locator:
    """Wait until a run asks about its eps; return the link to its question."""
    _await(
        tour,
        f"question about the eps of {run}",
        lambda: _question(tour, run).count() > 0,
        _no_run_failed(tour),
    )
    return _question(tour, run)


def _approve(page: Page) -> None:
    page.get_by_role("button", name="Approve").click()
    expect(_state(page)).not_to_have_text("Awaiting Input")


def _await(tour: Tour, what: str, is_there: Callable[[], bool], is_well: Callable[[], None]) -> None:
    """Look again and again, until it is there, something is not well, or a run would have ended.

    In between no page is open: one of a run that is under way takes more than a core.
    """
    end = time.monotonic() + RUN_SECONDS
    while not is_there():
        is_well()
        assert time.monotonic() < end, f"not within {RUN_SECONDS:g} s: {what}"
        tour.page.goto("about:blank")
        tour.page.wait_for_timeout(15_000)  # an opened page costs seconds of CPU


def _expect_report(frame: FrameLocator) -> None:
    expect(frame.get_by_role("heading", name="Navigation aids of the world")).to_be_visible()
    why = f"was chosen so that a point has {NEIGHBOURS} neighbours"
    expect(frame.get_by_text(why)).to_be_visible()  # as the form said
    pictures = frame.locator("svg[role=img]")
    expect(pictures.nth(REPORT_PICTURES - 1)).to_be_visible()
    for picture in pictures.all():
        box = picture.bounding_box()
        assert box is not None, "a picture of the report is not shown"
        assert min(box["width"], box["height"]) > 100, f"a picture of the report is hardly seen: {box}"


def _expect_runs(tour: Tour, runs: list[str]) -> None:
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
