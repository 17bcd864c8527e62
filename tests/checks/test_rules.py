"""The table: codes and names are unique, each rule has a page, and the signatures that rules compare are compared rightly."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path

import pytest

from sglang_plug.checks import table
from sglang_plug.checks.signatures import call_gap
from sglang_plug.data import data_dir
from sglang_plug.errors import UsageError
from sglang_plug.probe.inside.functions import describe, returns_of, signature_of
from sglang_plug.report import rules

PACKAGE = Path(table.__file__).parent


def test_codes_and_names_are_unique_and_ordered():
    assert len({rule.code for rule in table.RULES}) == len({rule.slug for rule in table.RULES}) == len(table.RULES)
    assert [rule.code for rule in table.RULES] == sorted(rule.code for rule in table.RULES)
    assert all(re.fullmatch(r"SP\d{3}", rule.code) and rule.family for rule in table.RULES)


DOCTORS = [rule for rule in table.RULES if rule.code[2] not in "78"]


@pytest.mark.parametrize("code", [rule.code for rule in DOCTORS])
def test_each_rule_has_a_page(code):
    text = (data_dir("rules") / f"{code}.md").read_text(encoding="utf-8")
    assert text.startswith(f"# {code} · {table.rule(code).slug}\n")
    for heading in ("## Example", "## What to do"):
        assert heading in text


def test_each_code_of_the_rules_is_in_the_table():
    used = set()
    for path in (PACKAGE / "rules").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and re.fullmatch(r"SP\d{3}", node.value):
                used.add(node.value)
    assert used <= {rule.code for rule in table.RULES}
    told = {rule.code for rule in DOCTORS if not "SP050" <= rule.code <= "SP099"} - {
        "SP109",
        "SP530",
    }  # told by doctor.py; by `resolve --hook`
    assert told - used - {"SP526", "SP531", "SP532"} == set(), "rules that no function reports"


def test_explain():
    assert rules.page("sp301") == rules.page("does-not-load")
    assert "SP3xx" in rules.listing()
    with pytest.raises(UsageError, match="SP3O1"):
        rules.page("SP3O1")


def shape(text: str) -> list[dict]:
    scope: dict = {}
    exec(f"def f{text}: pass", scope)
    return signature_of(scope["f"])["parameters"]


@pytest.mark.parametrize(
    ("expected", "actual", "certain"),
    [
        ("(x)", "(x)", None),
        ("(x)", "(*args)", None),
        ("(x)", "(*args, **kwargs)", None),
        ("(x, *, y=1)", "(x, **kwargs)", None),
        ("(x=0)", "(x=0, more=1)", None),
        ("(x)", "(x, *, more=1)", None),
        ("(*args, **kwargs)", "(x)", None),
        ("(x)", "()", True),
        ("(x)", "(x, y)", True),
        ("(x)", "(x, *, y)", True),
        ("(x=0)", "()", True),
        ("(x, y=0)", "(x)", False),
        ("(x, *, y=1)", "(x)", False),
        ("(x, *, y)", "(x)", True),
        ("(device_id=0)", "(local_rank=0)", False),
        ("(x, /)", "(other, /)", None),
    ],
)
def test_call_gap(expected, actual, certain):
    gap = call_gap(shape(expected), shape(actual))
    assert (gap.certain if gap else None) is certain


def test_call_gap_agrees_with_python():
    """Where the gap is certain Python refuses the plainest call; where there is none Python takes every call of the first signature."""
    texts = ["()", "(x)", "(x, y)", "(x, y=1)", "(x=1)", "(*a)", "(**k)", "(x, *a)", "(x, *, y)", "(x, *, y=1)", "(x, **k)", "(x, y, **k)"]
    for expected in (text for text in texts if "*a" not in text and "**" not in text):
        for actual in texts:
            scope: dict = {}
            exec(f"def f{actual}: pass", scope)
            gap = call_gap(shape(expected), shape(actual))
            if gap is None:
                for args, kwargs in calls(shape(expected)):
                    inspect.signature(scope["f"]).bind(*args, **kwargs)
            elif gap.certain:
                args, kwargs = next(iter(calls(shape(expected))))
                full = list(calls(shape(expected)))[-1]
                assert not (binds(scope["f"], args, kwargs) and binds(scope["f"], *full)), (expected, actual, gap)


def calls(parameters: list[dict]):
    """The plainest call that a signature takes, and the fullest with all by position where that is possible."""
    needed = [p for p in parameters if p["required"] and p["kind"] == "positional"]
    placed = [p for p in parameters if p["kind"] == "positional"]
    named = {p["name"]: 1 for p in parameters if p["kind"] == "keyword-only"}
    yield [1] * len(needed), {name: 1 for name, p in ((p["name"], p) for p in parameters) if p["kind"] == "keyword-only" and p["required"]}
    yield [1] * len(placed), named


def binds(function, args, kwargs) -> bool:
    try:
        inspect.signature(function).bind(*args, **kwargs)
    except TypeError:
        return False
    return True


def test_returns_of_nested_functions_are_not_counted():
    def hook(x):
        def inner():
            return 1

        return (x,), {}

    assert [(row["shape"], row["size"]) for row in returns_of(hook)] == [("tuple", 2)]


def test_describe_survives_anything():
    class Odd:
        def __repr__(self):
            raise ValueError

        def __call__(self):
            return None

    for thing in (
        print,
        len,
        Odd(),
        Odd,
        3,
        None,
        "x",
        type,
        object(),
        lambda: 1,
        str.join,
        classmethod(len),
        property(),
        functools_partial(),
    ):
        assert describe(thing)["kind"]


def functools_partial():
    import functools

    return functools.partial(print, 1)
