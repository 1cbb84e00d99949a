"""The steps of the tour in one file, because they are one story: what a person does, sees, and a picture.

A page is operated by what it shows (labels, texts, roles), by Airflow's own marks for tests where it shows
nothing. A step that does not see in time what it waits for fails with what that was.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from playwright.sync_api import expect

from .pages import (
    LISTED,
    NAME,
    NEIGHBOURS,
    RUN,
    Tour,
    await_question,
    expect_report,
    expect_runs,
    no_run_failed,
    open_back_fill,
    open_form_of_run,
    press_approve,
    state_is_not,
    state_of,
    text_of,
    unfold,
    wait_until,
)

TAKE_FIELDS = "Override parameters on existing runs"
"""Without it a back-fill takes nothing of the form's fields, for new runs, too."""


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
    open_form_of_run(tour)
    unfold(page, "Distance threshold", "element_eps").fill("-5")
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
    open_form_of_run(tour)
    neighbours = unfold(page, "Distance threshold", "element_neighbours")
    neighbours.fill(str(NEIGHBOURS))
    neighbours.scroll_into_view_if_needed()
    tour.look("05-good-parameter")
    page.get_by_test_id("trigger-dag-submit").click()
    page.wait_for_url(f"**/dags/navaids/runs/{NAME}")
    expect(state_of(page)).to_have_text(re.compile("Queued|Running"))
    expect(page.get_by_text(f"{RUN} 00:00:00")).to_be_visible()
    tour.look("06-started")


def approve(tour: Tour) -> None:
    """The run asks whether eps is right; a person approves."""
    question = await_question(tour, RUN)
    tour.look("07-required-action")
    question.click()
    expect(tour.page.get_by_text("pairs expected")).to_be_visible()
    tour.look("08-approve-eps")
    press_approve(tour.page)


def watch(tour: Tour) -> None:
    """The run goes on, task by task, to its end."""
    page = tour.page
    cell = page.get_by_role("row").filter(has_text="replicate").get_by_test_id("state-badge")

    def is_at_work() -> bool:
        tour.go(f"/dags/navaids/runs/{NAME}")
        expect(cell.first).to_be_visible()
        return text_of(cell) in ("Running", "Success")

    def has_ended_well() -> bool:
        tour.go(f"/dags/navaids/runs/{NAME}")
        expect(state_of(page)).to_be_visible()
        return text_of(state_of(page)) == "Success"

    wait_until(tour, "replicate at work", is_at_work, lambda: state_is_not(page, "Failed"))
    page.get_by_label("Show Gantt").first.click()
    tour.look("09-running")
    wait_until(tour, "the run's success", has_ended_well, lambda: state_is_not(page, "Failed"))
    tour.look("10-success")


def open_report(tour: Tour) -> None:
    """The run's tab Report has its numbers and pictures, on a telephone, too."""
    page = tour.page
    tour.go(f"/dags/navaids/runs/{NAME}")
    page.get_by_test_id("grid-view-button").click()
    page.get_by_role("link", name="Report", exact=True).click()
    frame = page.frame_locator("iframe")
    expect_report(frame)
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
    expect_runs(tour, [RUN])
    tour.look("14-reports")


def refuse_bad_back_fill(tour: Tour) -> None:
    """A back-fill with eps -5 is refused, and the form says why."""
    page = tour.page
    open_back_fill(tour)
    unfold(page, "Distance threshold", "element_eps").fill("-5")
    page.get_by_text(TAKE_FIELDS, exact=True).click()
    page.get_by_role("button", name="Run Backfill").click()
    refusal = page.get_by_text("-5 is less than or equal to the minimum of 0").first
    expect(refusal).to_be_visible()
    refusal.scroll_into_view_if_needed()
    tour.look("15-bad-back-fill")


def back_fill(tour: Tour) -> None:
    """A back-fill of some months with a good parameter starts from the form."""
    page = tour.page
    open_back_fill(tour)
    neighbours = unfold(page, "Distance threshold", "element_neighbours")
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
        await_question(tour, month).click()
        press_approve(page)
    rows = page.get_by_role("row").filter(has_text="backfill__")
    done = rows.filter(has=page.get_by_test_id("state-badge").filter(has_text="Success"))

    def all_done() -> bool:
        tour.go("/dags/navaids/runs")
        expect(rows.first).to_be_visible()
        return done.count() == len(tour.months)

    wait_until(tour, "the success of all runs of the back-fill", all_done, no_run_failed(tour))
    tour.look("18-back-filled")


def see_results(tour: Tour) -> None:
    """The results of all runs stand side by side, and each opens."""
    expect_runs(tour, sorted([RUN, *tour.full_months], reverse=True))
    tour.look("19-results")
    frame = tour.page.frame_locator("iframe")
    frame.get_by_role("link", name=tour.full_months[-1]).click()
    expect_report(frame)
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
