"""How a conformance test speaks: what is wrong, and what SGLang does about it. Raises pytest's own outcomes."""

from __future__ import annotations

from typing import NoReturn

import pytest


def demand(truth: object, wrong: str, consequence: str) -> None:
    """Pass where `truth` holds; else fail the test in the author's words, without a traceback of ours.

    Args:
        truth: what must hold.
        wrong: what was found instead.
        consequence: what SGLang does with it.
    """
    __tracebackhide__ = True
    if not truth:
        refuse(wrong, consequence)


def refuse(wrong: str, consequence: str) -> NoReturn:
    """Fail the test."""
    __tracebackhide__ = True
    pytest.fail(f"{wrong}\n  SGLang: {consequence}", pytrace=False)
