"""Every executed case of the hook registry, on both runtimes (S9)."""

from __future__ import annotations

import pytest

from tests.core.registry_cases import CASES, Bench, Case


def starts(found: list[str], expected: tuple[str, ...]) -> bool:
    return len(found) == len(expected) and all(line.startswith(begin) for line, begin in zip(found, expected, strict=True))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_case(case: Case, bench: Bench):
    assert case.run(bench) == case.expected
    assert starts(bench.logs, case.logs), bench.logs
