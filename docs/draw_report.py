"""Takes screenshots of the demo's report and copies its pictures; ``make screenshots`` runs it."""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from urllib.parse import unquote, urlsplit

from PIL import Image

PICTURES = Path(__file__).parent / "pictures"
"""Folder of the documents' pictures."""

VIEWS = {
    "report-phone.png": (390, 1500),
    "report-wide.png": (1280, 1150),
}
"""Screenshots of the beginning of the page: file name, width and height in CSS pixels."""

COPIED = ("clusters.png", "pair_count.png", "cost.png")
"""Pictures that the job ``report`` wrote."""

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
"""Names of the programs that can take the screenshots; the first one on the PATH is used."""

_QUIET = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)


def find_browser() -> str | None:
    """Find a browser of the Chromium family; ``None`` if there is none."""
    return next((found for name in BROWSERS if (found := shutil.which(name))), None)


def browse(browser: str, page: Path, *arguments: str) -> str:
    """Open a page without a window, in a new profile, and return what the browser prints."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        done = subprocess.run(
            [browser, *_QUIET, f"--user-data-dir={profile}", *arguments, page.resolve().as_uri()],
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
        )
    return done.stdout


def take_screenshot(
    browser: str, page: Path, picture: Path, width: int, height: int, *, is_dark: bool = False
) -> None:
    """Write the beginning of the page as a PNG file."""
    scheme = f"--blink-settings=preferredColorScheme={0 if is_dark else 1}"
    with tempfile.TemporaryDirectory() as scratch:
        raw = Path(scratch, "raw.png")
        browse(browser, page, scheme, f"--window-size={width},{height}", f"--screenshot={raw}")
        with Image.open(raw) as image:
            image.convert("RGB").save(picture, optimize=True)


def main() -> int:
    """Take the screenshots of a run's report and copy its pictures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lake", required=True, help="folder of all tables on this machine, as a file URI")
    parser.add_argument("--dataset", default="navaids")
    parser.add_argument("--run", required=True, help="logical date, YYYY-MM-DD")
    arguments = parser.parse_args()
    folder = Path(
        unquote(urlsplit(arguments.lake).path), arguments.dataset, "reports", f"run={arguments.run}"
    )
    page, browser = folder / "report.html", find_browser()
    if not page.is_file():
        print(f"{page} is missing; make demo writes it", file=sys.stderr)
        return 2
    if browser is None:
        print(f"none of the browsers {', '.join(BROWSERS)} is on the PATH; install chromium", file=sys.stderr)
        return 2
    for name, (width, height) in VIEWS.items():
        take_screenshot(browser, page, PICTURES / name, width, height)
    for name in COPIED:
        shutil.copyfile(folder / name, PICTURES / name)
    for name in (*VIEWS, *COPIED):
        print(f"{PICTURES / name}: {(PICTURES / name).stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
