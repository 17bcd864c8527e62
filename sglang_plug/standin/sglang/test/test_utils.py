"""The base class of SGLang's unit tests."""

from __future__ import annotations

import functools
import unittest
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["CustomTestCase"]


class CustomTestCase(unittest.TestCase):
    """A test case whose `tearDownClass` runs after a failed `setUpClass` too, so that nothing it started lives on."""

    def __init_subclass__(cls, **words: Any) -> None:
        super().__init_subclass__(**words)
        own = vars(cls).get("setUpClass")
        if own is not None:
            cls.setUpClass = classmethod(_cleaning(own.__func__))  # type: ignore[method-assign, assignment]


def _cleaning(set_up: Callable[[Any], None]) -> Callable[[Any], None]:
    @functools.wraps(set_up)
    def wrapper(cls: Any) -> None:
        try:
            set_up(cls)
        except Exception:
            cls.tearDownClass()
            raise

    return wrapper
