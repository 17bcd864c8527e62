"""Pages that are read off the tool say what the tool says; every rule has its page."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from sglang_plug.checks.table import RULES

DOCS = Path(__file__).parents[2] / "docs"


def test_the_reference_is_current():
    done = subprocess.run([sys.executable, str(DOCS / "make_reference.py"), "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_a_rule_has_a_page_that_names_it(rule):
    text = (DOCS / "rules" / f"{rule.code}.md").read_text()
    assert text.startswith("# ")
    assert rule.code in text
    assert rule.slug in text


def test_no_page_is_left_of_a_rule_that_went():
    assert {path.stem for path in (DOCS / "rules").glob("SP*.md")} == {rule.code for rule in RULES}


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"])
def test_a_page_outside_the_site_links_to_what_is_there(name: str):
    targets = re.findall(r"\]\(([^)#]+)[^)]*\)", (DOCS.parent / name).read_text())
    assert not [target for target in targets if "://" not in target and not (DOCS.parent / target).exists()]
