"""The doctor's page in a real browser: complete without network or script, readable on a phone, filtered by its boxes, dark and light."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from html import escape, unescape
from pathlib import Path
from typing import Any

import pytest

from tests.plugins.install import Site, hook, platform

CHROMIUM = Path("/usr/bin/chromium")
QUIET = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
pytestmark = pytest.mark.skipif(not CHROMIUM.exists(), reason="Chromium is not installed")

#: What a stranger's message may try: to run, to load, and to be wider than any screen.
HOSTILE = "<script>parent.ran = true</script><img src='https://example.invalid/x.png' onerror='parent.ran = true'>" + "w" * 400

#: A page around the page, which stays as it is: it is shown in frames of two widths, and looked at from outside.
HARNESS = """<!doctype html><html><head><meta charset="utf-8"><meta name="color-scheme" content="light dark"></head><body>
<iframe id="phone" style="width:400px;height:900px" srcdoc="{page}"></iframe>
<iframe id="wide" style="width:1200px;height:900px" srcdoc="{page}"></iframe>
<pre id="seen"></pre>
<script>
function look(frame) {{
  const inside = frame.contentDocument, view = frame.contentWindow, seen = {{}};
  inside.querySelectorAll("details").forEach(entry => entry.open = true);
  seen.overflow = inside.documentElement.scrollWidth - inside.documentElement.clientWidth;
  seen.loaded = view.performance.getEntriesByType("resource").length;
  seen.scripts = inside.scripts.length;
  const shown = () => ["error", "warning", "info"].filter(
    level => [...inside.querySelectorAll("article." + level)].some(entry => entry.getClientRects().length));
  seen.shown = shown();
  seen.without = {{}};
  for (const level of seen.shown) {{
    const box = inside.getElementById(level);
    box.click(); seen.without[level] = shown(); box.click();
  }}
  seen.again = shown();
  seen.color = view.getComputedStyle(inside.body).color;
  seen.cards = view.getComputedStyle(inside.querySelector(".trail tr")).display;
  return seen;
}}
addEventListener("load", () => {{
  const seen = Object.fromEntries([...document.querySelectorAll("iframe")].map(frame => [frame.id, look(frame)]));
  seen.ran = window.ran === true;
  document.getElementById("seen").textContent = JSON.stringify(seen);
}});
</script></body></html>"""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The page about an installation with an error, a warning and a note, all of them hostile where they can be."""
    folder = tmp_path_factory.mktemp("page")
    site = Site(folder / "site")
    platform(site, "pa")
    hook(site, f"def register():\n    raise RuntimeError({HOSTILE!r})\n", "h" * 120)
    hook(site, "def register():\n    print('noise')\n", "noisy")
    done = subprocess.run(
        [sys.executable, "-m", "sglang_plug", "doctor", "--format", "html", "--output", str(folder / "page.html")],
        env=site.env(SGLANG_PLATFROM="pa"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    return (folder / "page.html").read_text(encoding="utf-8")


def browse(page: str, folder: Path, *flags: str) -> dict[str, Any]:
    """Return what is seen of the page in the browser."""
    harness = folder / "harness.html"
    harness.write_text(HARNESS.format(page=escape(page)), encoding="utf-8")
    command = [str(CHROMIUM), *QUIET, *flags, f"--user-data-dir={folder / 'profile'}", "--dump-dom", harness.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    found = re.search(r'<pre id="seen">(.*?)</pre>', done.stdout, re.DOTALL)
    assert found, done.stderr
    assert found[1], "the page was not looked at"
    seen: dict[str, Any] = json.loads(unescape(found[1]))
    return seen


def lightness(color: str) -> float:
    return sum(map(float, re.findall(r"[\d.]+", color)[:3])) / 3


def test_the_page_in_light(page: str, tmp_path: Path):
    seen = browse(page, tmp_path)
    assert not seen["ran"], "a stranger's message ran as a script"
    for frame in (seen["phone"], seen["wide"]):
        assert frame["overflow"] == 0, "the page is wider than the screen"
        assert frame["loaded"] == frame["scripts"] == 0
        assert frame["shown"] == frame["again"] == ["error", "warning", "info"]
        assert frame["without"] == {level: [other for other in frame["shown"] if other != level] for level in frame["shown"]}
        assert lightness(frame["color"]) < 60
    assert seen["phone"]["cards"] == "grid"
    assert seen["wide"]["cards"] == "table-row"


def test_the_page_in_dark(page: str, tmp_path: Path):
    seen = browse(page, tmp_path, "--blink-settings=preferredColorScheme=0")
    assert lightness(seen["phone"]["color"]) > 200


def test_the_page_forbids_itself_to_load_anything(page: str):
    assert "default-src 'none'" in page
    assert not re.search(r"<(script|img|link|iframe|object)\b", page)
