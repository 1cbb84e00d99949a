"""``make tour``: start the services, do in a browser what a person does, look at what it shows, stop them.

The services run in a folder, on ports and with a lake of their own; their one DAG is that of
``tests/tour/dags``, which asks a person about eps.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import date
from pathlib import Path

from playwright.sync_api import Error, Page, expect, sync_playwright

from ports import free_ports
from tour.pages import Tour
from tour.steps import STEPS

REPO = Path(__file__).resolve().parents[2]
FAILED = Path(tempfile.gettempdir()) / "epsjoin-tour-failed.png"
PORTS = ("AIRFLOW__API__PORT", "EPSJOIN_DATABASE_PORT", "EPSJOIN_CLUSTER_PORT")
BROWSER_FLAGS = (
    "--no-sandbox",  # Chromium's own does not start for root; the pages are ours
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
PATIENCE = 120_000
"""Milliseconds that a page may take to show what it is asked for."""


def main(argv: Sequence[str]) -> int:
    """Go through all steps; 0 when each showed what it should."""
    parser = argparse.ArgumentParser(prog="make tour", description=__doc__.splitlines()[0])
    parser.add_argument("--into", type=Path, default=REPO / "docs" / "pictures" / "tour", help="the pictures")
    parser.add_argument(
        "--months", nargs=2, default=("2022-10-01", "2022-12-01"), help="first and last, to back-fill"
    )
    parser.add_argument(
        "--home",
        type=Path,
        help="folder of services, which are used if they run, and go on after the tour (default: one that is "
        "removed at the end)",
    )
    parser.add_argument(
        "--first", type=int, default=1, help="begin at this step: those before were made in --home"
    )
    arguments = parser.parse_args(argv)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        print("tour: no chromium here; install it (on Debian: apt-get install chromium)", file=sys.stderr)
        return 1
    arguments.into.mkdir(parents=True, exist_ok=True)
    months = list(_months(*arguments.months))
    full = [month for month in months if list((REPO / "tests/data/navaids").glob(f"{month[:7]}-*.csv.gz"))]
    if not full:
        print(f"tour: no snapshot of navaids is of {' to '.join(arguments.months)}", file=sys.stderr)
        return 2
    began = time.monotonic()
    with ExitStack() as stack:
        services = _services(arguments.home) if arguments.home else stack.enter_context(_own_services())
        if services is None:
            return 1
        base, password = services
        page = stack.enter_context(_browser(chromium))
        tour = Tour(page, base, password, arguments.into, months, full)
        if arguments.first > 2:
            _log_in(tour)
        for number, step in enumerate(STEPS, 1):
            if number < arguments.first:
                continue
            said, at = (step.__doc__ or "").strip(), time.monotonic()
            try:
                step(tour)
            except (AssertionError, Error) as error:
                page.screenshot(path=FAILED)
                print(f"tour: step {number} failed: {said}\n{_short(error)}", file=sys.stderr)
                print(f"tour: what the page showed: {FAILED}", file=sys.stderr)
                return 1
            print(f"tour: {number:2d}. {said} ({time.monotonic() - at:.0f} s)", flush=True)
    print(f"tour: done in {time.monotonic() - began:.0f} s; pictures in {arguments.into}")
    return 0


def _short(error: Exception) -> str:
    """What was looked for, without the whole page that follows."""
    return str(error).partition("Aria snapshot")[0].strip()


def _months(first: str, last: str) -> Iterator[str]:
    day, end = date.fromisoformat(first), date.fromisoformat(last)
    while day <= end:
        yield day.isoformat()
        day = date(day.year + day.month // 12, day.month % 12 + 1, 1)


@contextmanager
def _own_services() -> Iterator[tuple[str, str] | None]:
    # PostgreSQL, which root starts as another user, must reach it
    home = Path(tempfile.mkdtemp(prefix="epsjoin-tour-"))
    try:
        yield _services(home)
    finally:
        _say(home, "down")
        shutil.rmtree(home, ignore_errors=True)


def _services(home: Path) -> tuple[str, str] | None:
    """Start the services of a folder; return address and password, or nothing if they do not start."""
    home.mkdir(parents=True, exist_ok=True)
    file = home / "ports.json"
    if not file.exists():
        first = free_ports(5)  # the workers of the cluster take the two after its own
        file.write_text(json.dumps({name: str(first + n) for n, name in enumerate(PORTS)}))
    if _say(home, "up"):
        return None
    port = json.loads(file.read_text())["AIRFLOW__API__PORT"]
    return f"http://127.0.0.1:{port}", json.loads((home / "secrets" / "passwords.json").read_text())["admin"]


def _say(home: Path, word: str) -> int:
    """Say a word to ``bin/services``; nothing of the person's settings reaches them."""
    own = {name: value for name, value in os.environ.items() if not name.startswith(("EPSJOIN_", "AIRFLOW_"))}
    own |= json.loads((home / "ports.json").read_text())
    own |= {
        "EPSJOIN_SERVICES_DIR": str(home),
        "EPSJOIN_SERVICES_WAIT": "900",
        "EPSJOIN_LAKE": (home / "lake").as_uri(),
        "AIRFLOW__CORE__DAGS_FOLDER": str(Path(__file__).with_name("dags")),
    }
    return subprocess.run([str(REPO / "bin" / "services"), word], env=own, check=False).returncode


@contextmanager
def _browser(chromium: str) -> Iterator[Page]:
    """Start Chromium with a new profile."""
    expect.set_options(timeout=PATIENCE)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium, headless=True, args=list(BROWSER_FLAGS)
        )
        context = browser.new_context(
            viewport={"width": 1280, "height": 800}, locale="en-GB", timezone_id="UTC"
        )
        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        try:
            yield page
        finally:
            browser.close()


def _log_in(tour: Tour) -> None:
    """Log in without a picture."""
    tour.page.goto(tour.base)
    tour.page.get_by_label("Username").fill("admin")
    tour.page.get_by_label("Password").fill(tour.password)
    tour.page.get_by_role("button", name="Sign in").click()
    tour.page.get_by_test_id("nav-dags-link").wait_for()


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
