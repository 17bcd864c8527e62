"""What every format must keep: each finding, no stranger's control character, and its own grammar."""

from __future__ import annotations

import json
import os
import re
from html import unescape
from html.parser import HTMLParser
from xml.etree import ElementTree as ET

import pytest

from sglang_plug.checks.doctor import Report, order
from sglang_plug.checks.model import Finding, Level, Location
from sglang_plug.checks.selection import codes, kept
from sglang_plug.errors import SglangPlugError, UsageError
from sglang_plug.report import findings

EVIL = "\x1b[2J\x1b]0;owned\x07[bold red]hello[/] <script>&\"' ]]> | `x` ::error::\r\n%0A ￾\ud800"
SUBJECT = {"kind": "entry_point", "name": "pa", "group": "sglang.srt.platforms", "value": "pa:activate", "dist": "pa-dist"}


@pytest.fixture
def report() -> Report:
    rows = [
        {"name": "pa", "group": "sglang.srt.platforms", "value": "pa:activate", "dist": "pa-dist", "version": "1.0", "kind": "platform"},
        {"name": EVIL, "group": "sglang.srt.plugins", "value": EVIL, "dist": EVIL, "version": EVIL, "kind": "hook plugin"},
        {"name": "hk", "group": "sglang.srt.plugins", "value": "hk:r", "dist": "hk-dist", "version": "1.0", "kind": "hook plugin"},
    ]
    outcomes = [{"outcome": "failed"}, {"outcome": "ok", "hooks": {"registered": 1, "applied": 0}}, {"outcome": "skipped", "why": EVIL}]
    rows = [row | more | {"where": "/site"} for row, more in zip(rows, outcomes, strict=True)]
    found = (
        Finding("SP301", Level.ERROR, SUBJECT, f"does not import {EVIL}", EVIL, EVIL, Location("/site/pa.py", 3), {"traceback": EVIL}),
        Finding("SP321", Level.WARNING, SUBJECT, "prints", None, "log it"),
        Finding("SP001", Level.INFO, {"kind": "host", "name": EVIL}, "no SGLang"),
    )
    sglang = {"engine": "standin", "version": None, "origin": None}
    steps = [{"rule": "activate", "subject": EVIL, "verdict": "failed", "why": EVIL}]
    platforms = {"srt": {"outcome": "error", "name": None, "dist": None, "error": EVIL, "steps": steps}}
    host = {"python": EVIL, "version": "3.11", "prefix": "/p", "release": "0.5.23", "sglang": sglang, "platforms": platforms}
    host["isolation"] = {"kind": "spawn", "why": EVIL}
    return Report(host, rows, found)


@pytest.mark.parametrize("kind", ["text", *findings.FORMATS])
def test_no_control_character_gets_through(report, kind):
    text = findings.render(report, kind, verbose=True)
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", text)
    assert text.encode("utf-8")  # no lone surrogate either
    assert "SP301" in text
    assert "SP321" in text


def test_json(report):
    document = json.loads(findings.render(report, "json"))
    assert document["schema"] == 1
    assert [f["code"] for f in document["findings"]] == ["SP301", "SP321", "SP001"]
    assert document["findings"][0]["location"] == {"path": "/site/pa.py", "line": 3, "column": None}
    assert document["findings"][0]["level"] == "error"
    assert document["summary"]["error"] == 1


def test_sarif(report):
    run = json.loads(findings.render(report, "sarif"))["runs"][0]
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == ["SP001", "SP301", "SP321"]
    for result in run["results"]:
        assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
    assert [result["level"] for result in run["results"]] == ["error", "warning", "note"]
    assert run["results"][0]["locations"][0]["physicalLocation"]["region"] == {"startLine": 3}


@pytest.mark.parametrize(
    ("path", "uri"), [("/site/a b.py", "file:///site/a%20b.py"), ("a.py", "a.py"), ("/\ud800.py", "file:///%ED%A0%80.py")]
)
def test_sarif_takes_any_path(path, uri):
    found = Finding("SP301", Level.ERROR, SUBJECT, "does not import", location=Location(path, 1))
    result = json.loads(findings.render(Report({}, [], (found,)), "sarif"))["runs"][0]["results"][0]
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == uri


def test_junit(report):
    suite = ET.fromstring(findings.render(report, "junit"))
    assert suite.get("failures") == "1"  # the entry point with two findings
    assert suite.get("skipped") == "1"
    assert len(suite.findall("testcase")) == int(suite.get("tests"))
    assert [f.get("type") for f in suite[0].findall("failure")] == ["SP301 error", "SP321 warning"]


def test_github(report):
    lines = findings.render(report, "github").splitlines()
    assert [line.split(" ")[0] for line in lines] == ["::error", "::warning", "::notice"]
    assert lines[0].startswith("::error file=/site/pa.py,line=3,title=SP301 does-not-load::")


def test_markdown_keeps_its_structure(report):
    text = findings.render(report, "markdown")
    assert "<script>" not in text
    assert len([line for line in text.splitlines() if line.startswith("- **")]) == 3


def test_html_is_one_page_without_outside_parts(report):
    text = findings.render(report, "html")
    seen = []

    class Reader(HTMLParser):
        def handle_starttag(self, tag, attrs):
            seen.append(tag)
            assert not {"src", "href", "onload"} & {name for name, _ in attrs}

    Reader().feed(text)
    assert "script" not in seen
    assert seen.count("input") == 3  # a box for each level
    for level in Level:
        assert f'id="{level.value}"' in text
    assert seen.count("article") == 3


@pytest.mark.parametrize("kind", ["text", "html"])
def test_a_page_tells_of_hooks_as_the_text_does(report, kind):
    assert "hooks: 1 registered, 0 applied" in findings.render(report, kind)


@pytest.mark.parametrize(
    ("decision", "words"),
    [
        ({"outcome": "plugin", "name": "mydev", "dist": "my-dev", "error": None}, "platform 'mydev' of my-dev"),
        ({"outcome": "builtin", "name": "cpu", "dist": None, "error": None}, "built-in platform 'cpu'"),
    ],
)
def test_a_page_names_the_platform_as_the_text_does(report, decision, words):
    report.host["platforms"] = {"srt": decision}
    assert f"srt: {words}\n" in findings.render(report, "text")
    assert f"srt: <code>{words}</code>" in unescape(findings.render(report, "html"))


def test_text_groups_by_level(report):
    text = findings.render(report, "text")
    assert text.index("Errors (1)") < text.index("Warnings (1)") < text.index("Notes (1)")
    assert "hint: log it" in text


def test_findings_are_ordered_and_told_once(report):
    twice = order([*reversed(report.findings), *report.findings])
    assert [f.code for f in twice] == ["SP301", "SP321", "SP001"]


@pytest.mark.parametrize(
    ("select", "ignore", "left"),
    [
        ((), (), ["SP301", "SP321", "SP001"]),
        (("SP3",), (), ["SP301", "SP321"]),
        (("sp301,SP001",), (), ["SP301", "SP001"]),
        (("prints",), (), ["SP321"]),
        ((), ("SP301", "no-sglang"), ["SP321"]),
        (("SP3",), ("SP321",), ["SP301"]),
    ],
)
def test_select_and_ignore(report, select, ignore, left):
    assert [f.code for f in kept(report, select, ignore).findings] == left


def test_an_unknown_rule_is_a_usage_error():
    with pytest.raises(UsageError, match="XX9"):
        codes(["XX9"])


@pytest.mark.parametrize(
    ("levels", "plain", "strict"),
    [((), False, False), ((Level.INFO,), False, False), ((Level.WARNING,), False, True), ((Level.ERROR,), True, True)],
)
def test_what_fails(levels, plain, strict):
    made = Report({}, findings=tuple(Finding("SP001", level, {"kind": "host", "name": "x"}, "m") for level in levels))
    assert made.failed() is plain
    assert made.failed(strict=True) is strict


def test_output_to_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(SglangPlugError, match="cannot be written"):
        findings.save("x", tmp_path / "no" / "x.json")


def test_a_file_gets_the_mode_that_the_umask_gives(tmp_path):
    before = os.umask(0o027)
    try:
        findings.save("text", tmp_path / "report.json")
    finally:
        os.umask(before)
    assert (tmp_path / "report.json").stat().st_mode & 0o777 == 0o640
    assert [path.name for path in tmp_path.iterdir()] == ["report.json"]
