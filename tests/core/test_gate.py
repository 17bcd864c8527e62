"""Once per process: states, re-entrance, other threads, final failure (S6.3)."""

from __future__ import annotations

import threading

import pytest

from sglang_plug.core.gate import Once, State
from sglang_plug.errors import PhaseFailed


def test_the_action_runs_once():
    runs: list[int] = []
    gate = Once("loading")
    assert gate.run(lambda: runs.append(1))
    assert gate.run(lambda: runs.append(2))
    assert runs == [1]
    assert gate.state is State.COMPLETE


def test_a_call_from_inside_returns_at_once():
    gate = Once("loading")
    inner: list[bool] = []
    assert gate.run(lambda: inner.append(gate.run(lambda: inner.append(True))))
    assert inner == [False]


def test_a_failure_is_final_and_names_its_cause():
    gate = Once("loading")
    with pytest.raises(ZeroDivisionError):
        gate.run(lambda: 1 // 0)
    for _ in range(2):
        with pytest.raises(PhaseFailed, match="loading previously failed: integer division") as caught:
            gate.run(lambda: None)
        assert isinstance(caught.value.__cause__, ZeroDivisionError)
        assert isinstance(caught.value, RuntimeError)


def test_even_an_interrupt_is_a_failure():
    gate = Once("loading")

    def interrupted() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        gate.run(interrupted)
    with pytest.raises(PhaseFailed):
        gate.run(lambda: None)


def test_a_gate_that_is_not_final_tries_again():
    gate = Once("selection", final=False)
    with pytest.raises(ZeroDivisionError):
        gate.run(lambda: 1 // 0)
    assert gate.run(lambda: None)


def test_other_threads_wait_for_the_end():
    gate = Once("loading")
    inside, go = threading.Event(), threading.Event()
    order: list[str] = []

    def first() -> None:
        inside.set()
        go.wait(10)
        order.append("done")

    def second() -> None:
        gate.run(lambda: order.append("again"))
        order.append("second goes on")

    threads = [threading.Thread(target=gate.run, args=(first,)), threading.Thread(target=second)]
    threads[0].start()
    assert inside.wait(10)
    threads[1].start()
    go.set()
    for thread in threads:
        thread.join(10)
    assert order == ["done", "second goes on"]


def test_reset_forgets():
    gate = Once("loading")
    with pytest.raises(ZeroDivisionError):
        gate.run(lambda: 1 // 0)
    gate.reset()
    assert gate.run(lambda: None)
