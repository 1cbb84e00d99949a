"""The one script of the report pages: a page is as light or dark as its reader made Airflow."""

from __future__ import annotations

import json
import shutil
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from dags.fake_spark import REPOSITORY

SCRIPT = (REPOSITORY / "plugins" / "report_theme.js").read_text(encoding="utf-8")
NODE = shutil.which("node")
BROWSER = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))),
    None,
)
THEMES = [("dark", "dark"), ("light", "light"), ("system", None), (None, None), ("<b>", None)]
"""What Airflow keeps, and what the page is told; without a word it is as the system is."""

WITHOUT_BROWSER = """
const dataset = {theme: "of before"}, heard = {};
globalThis.document = {documentElement: {dataset}};
globalThis.addEventListener = (what, call) => { heard[what] = call; };
let kept = KEPT;
globalThis.localStorage = {getItem: name => {
  if (kept === undefined) throw Error("no");
  return name === "theme" ? kept : null;
}};
SCRIPT
const first = dataset.theme ?? null;
kept = "dark";
heard.storage();
console.log(JSON.stringify([first, dataset.theme]));
"""


@pytest.mark.skipif(NODE is None, reason="no node on this machine to run the script")
@pytest.mark.parametrize(("kept", "told"), [*THEMES, ("undefined", None)])
def test_theme__is_that_of_airflow_and_follows_it(kept: str | None, told: str | None) -> None:
    """Undefined: the browser keeps nothing for the page, and says so by an exception."""
    as_code = kept if kept == "undefined" else json.dumps(kept)
    code = WITHOUT_BROWSER.replace("KEPT", str(as_code)).replace("SCRIPT", SCRIPT)
    done = subprocess.run([str(NODE), "-e", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == [told, "dark"]


@pytest.fixture
def origin() -> Iterator[str]:
    """Pages of one origin, as Airflow has: /keep/X keeps a theme and goes on to the page with our headers."""
    import report_pages  # needs Airflow's settings, which conftest makes first

    class Pages(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            kept = self.path.removeprefix("/keep/")
            if kept != self.path:
                text = f"<script>localStorage.setItem('theme', '{kept}'); location = '/report'</script>"
            else:
                text = f"<!doctype html><head><script>{report_pages.THEME}</script></head><body>"
                text += "<script>document.title = 'somebody else ran'</script>a report</body>"
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            for name, value in report_pages.HEADERS.items() if kept == self.path else ():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Pages) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.skipif(BROWSER is None, reason="no chromium on this machine to show the page")
@pytest.mark.parametrize(("kept", "told"), [("dark", "dark"), ("light", "light"), ("system", None)])
def test_theme__is_the_only_script_that_the_headers_let_run(
    origin: str, tmp_path: Path, kept: str, told: str | None
) -> None:
    arguments = ("--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}", "--dump-dom")
    done = subprocess.run(
        [str(BROWSER), *arguments, "--virtual-time-budget=5000", f"{origin}/keep/{kept}"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert "a report" in done.stdout
    assert (f'<html data-theme="{told}">' if told else "<html>") in done.stdout
    assert "<title>" not in done.stdout, "a script that is not ours has run"
