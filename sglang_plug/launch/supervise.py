"""Runs one engine from start to end: streams its output, follows its start, and leaves nobody behind. Writes to the given streams only."""

from __future__ import annotations

import contextlib
import os
import queue
import shutil
import signal
import subprocess
import threading
import time
import uuid
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Any

from sglang_plug.errors import LaunchError
from sglang_plug.launch import tree
from sglang_plug.launch.obituary import Listener
from sglang_plug.launch.phases import SAYS_READY, WARMUP_FAILED, Progress, aside
from sglang_plug.launch.readiness import Knocker, first_question
from sglang_plug.launch.terms import Outcome, Wishes
from sglang_plug.launch.watcher import Watcher

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

    from sglang_plug.launch.plan import Plan
    from sglang_plug.launch.terms import Audience

GRACE = 8.0  # SGLang drains for about five seconds; the whole tree must be gone after ten
LEFT_BEHIND = 2.0  # for what outlives an engine that ended by itself
LOOK_STARTING, LOOK_SERVING = 1.0, 10.0
SILENCE = 60.0
GAVE_UP = 1  # the status of a launch that we end because it does not start as it should
WORKERS = ("sglang::", "ray::")  # what the engine's processes call themselves


@dataclass
class _State:
    started: float = field(default_factory=time.monotonic)
    progress: Progress = field(default_factory=Progress)
    listener: Listener = field(default_factory=Listener)
    heard: float = field(default_factory=time.monotonic)
    looked: float = 0.0
    ready: float | None = None
    cold: bool = False  # SGLang's diffusion server failed to warm up, and goes on
    warned: set[str] = field(default_factory=set)
    asked: str | None = None  # why the engine was told to stop
    gave_up: bool = False  # because it did not start as it should
    number: int = signal.SIGTERM  # the signal that asked us, where one did
    deadline: float | None = None
    workers: list[tree.Process] = field(default_factory=list)  # the engine's own processes, since it is ready

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.started


def run(plan: Plan, audience: Audience, *, out: IO[bytes], err: IO[bytes], wishes: Wishes | None = None) -> Outcome:
    """Run the engine of `plan` until it ends or somebody ends this process, and return how it ended.

    Args:
        plan: what to start.
        audience: is told of milestones, readiness and the end.
        out, err: where the engine's output goes, byte for byte.
        wishes: limits and the like.

    Raises:
        LaunchError: the program cannot be started.
    """
    wishes = wishes or Wishes()
    mark = uuid.uuid4().hex
    tree.adopt_orphans()
    watcher = Watcher(mark, wishes.folders)
    try:
        with _start(plan, mark) as process:
            run = _Run(plan, audience, process, tree.Family(process.pid, mark), watcher=watcher, wishes=wishes)
            try:
                return run.follow(out, err)
            finally:
                run.family.end(grace=0)
    finally:
        for folder in wishes.folders:
            shutil.rmtree(folder, ignore_errors=True)
        watcher.dismiss()


def run_plainly(plan: Plan) -> int:
    """Run a program that ends by itself (the engine's `--help`) on our own streams, and return its status."""
    return subprocess.run(plan.argv, env=dict(plan.environment.env), cwd=plan.environment.cwd, check=False).returncode


def _start(plan: Plan, mark: str) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            plan.argv,
            env={**plan.environment.env, tree.MARK: mark, "PYTHONUNBUFFERED": plan.environment.env.get("PYTHONUNBUFFERED", "1")},
            cwd=plan.environment.cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,  # a terminal's Ctrl-C reaches us alone: we end the tree in order
            preexec_fn=tree.die_with_parent,  # noqa: PLW1509 - one system call, and no thread runs yet
        )
    except OSError as exc:
        raise LaunchError("the engine cannot be started", subject=plan.argv[0], cause=str(exc), hint="check --python") from exc


class _Run:
    """The loop of one launch: everything that happens arrives as an event on one queue."""

    def __init__(
        self,
        plan: Plan,
        audience: Audience,
        process: subprocess.Popen[bytes],
        family: tree.Family,
        *,
        watcher: Watcher,
        wishes: Wishes,
    ) -> None:
        self.family = family
        self._plan, self._audience, self._process, self._watcher, self._wishes = plan, audience, process, watcher, wishes
        self._events: queue.SimpleQueue[tuple[str, Any]] = queue.SimpleQueue()
        self._state = _State(listener=Listener(wishes.plugins))
        self._knocker = Knocker(
            plan,
            answered=lambda: self._events.put(("answered", None)),
            refused=lambda why: self._events.put(("refused", why)),
        )

    def follow(self, out: IO[bytes], err: IO[bytes]) -> Outcome:
        """Follow the engine to its end."""
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        pumps = [self._pump(self._process.stdout, out), self._pump(self._process.stderr, err)]
        self._look()
        with _signals(self._events):
            threading.Thread(target=lambda: self._events.put(("ended", self._process.wait())), daemon=True).start()
            self._knocker.start()
            while (status := self._turn()) is None:
                pass
            self._knocker.stop()
            killed = self.family.end(grace=max(0.0, (self._state.deadline or time.monotonic() + LEFT_BEHIND) - time.monotonic()))
            if killed:
                self._audience.killed(killed)
            for pump in pumps:
                pump.join(timeout=2)
        self._drain()
        if self._state.gave_up:
            return Outcome(GAVE_UP, None, self._state.listener.give_up(self._state.asked or "", self._state.progress.last))
        obituary = None
        if self._state.asked is None and (status != 0 or self._state.ready is None):
            obituary = self._state.listener.write(status, self._state.progress.last if self._state.ready is None else "serving")
        if self._state.asked is not None and status == -signal.SIGTERM:  # our own SIGTERM, sent on behalf of that signal
            status = -self._state.number
        return Outcome(128 - status if status < 0 else status, self._state.ready, obituary)

    def _turn(self) -> int | None:
        """Take one event, or notice that time has passed; return the engine's status once it ended."""
        try:
            kind, value = self._events.get(timeout=0.25)
        except queue.Empty:
            self._tick()
            return None
        if kind == "line":
            self._hear(value)
        elif kind == "answered":
            self._answered()
        elif kind == "refused":
            self._audience.not_answering(value)
        elif kind == "signal":
            if self._state.asked is None:
                self._state.number = value
            self._stop(signal.Signals(value).name)
        elif kind == "ended":
            return int(value)
        return None

    def _answered(self) -> None:
        if self._state.asked is not None:
            return  # it is being stopped: too late to be ready
        if self._wishes.check is not None and (reason := self._wishes.check()) is not None:
            self._stop(reason, gave_up=True)
            return
        self._state.ready = self._state.seconds
        self._state.listener.begin_anew()
        everybody = self._look()
        self._state.workers = [process for process in everybody if process.title.startswith(WORKERS)]
        if self._wishes.at_ready is not None:
            self._wishes.at_ready(everybody)
        self._audience.ready(self._plan.arguments.url, self._state.ready, self._shown())
        if self._wishes.until_ready:
            self._stop("trial start")

    def _shown(self) -> str:
        """Say what the first answer shows, and for SGLang's diffusion server what its log tells of the picture it warms up with."""
        shown = first_question(self._plan).shows
        if (self._plan.engine, self._plan.runtime) != ("sglang", "diffusion"):
            return shown
        if self._state.cold:
            return f"{shown}; its own warm-up picture failed, see its log: send one yourself"
        if SAYS_READY not in self._state.progress.reached:
            return f"{shown}; its log tells of no warm-up picture: send one yourself"
        return f"{shown}; it has made a picture of its own to warm up"

    def _look(self) -> list[tree.Process]:
        """See who is there, and tell the watcher: a process may later hide its mark, or lose its parent."""
        self._state.looked = time.monotonic()
        everybody = self.family.look()
        self._watcher.watch(self.family.known)
        return everybody

    def _tick(self) -> None:
        state, now = self._state, time.monotonic()
        if now - state.looked > (LOOK_STARTING if state.ready is None else LOOK_SERVING):
            self._look()
        if state.deadline is not None:
            if now > state.deadline:
                self._kill()
            return
        if state.ready is not None:
            for process in [process for process in state.workers if not tree.is_alive(process)]:
                state.workers.remove(process)
                self._audience.lost(process)
            return
        if self._wishes.check is not None and (reason := self._wishes.check()) is not None:
            self._stop(reason, gave_up=True)
        elif self._wishes.ready_limit is not None and state.seconds > self._wishes.ready_limit:
            self._stop(f"no answer within {self._wishes.ready_limit:g} s", gave_up=True)
        elif now - state.heard > SILENCE:
            state.heard = now
            self._audience.still_waiting(state.progress.last, state.seconds, state.listener.tail[-1] if state.listener.tail else "")

    def _hear(self, line: str) -> None:
        self._state.heard = time.monotonic()
        self._state.listener.hear(line)
        self._state.cold |= WARMUP_FAILED in line
        if (means := aside(line)) is not None and means not in self._state.warned:
            self._state.warned.add(means)
            self._audience.warned(means)
        if self._state.ready is None and (milestone := self._state.progress.read(line, self._state.seconds)):
            self._audience.reached(milestone, self._state.seconds)

    def _stop(self, reason: str, *, gave_up: bool = False) -> None:
        if self._state.asked is not None:  # asked twice: at once
            self._kill()
            return
        self._state.asked, self._state.gave_up = reason, gave_up
        self._state.deadline = time.monotonic() + GRACE
        self._audience.stopping(reason)
        tree.send(self._process.pid, signal.SIGTERM)

    def _kill(self) -> None:
        self._state.deadline = time.monotonic()
        for process in self.family.look():
            tree.send(process.pid, signal.SIGKILL)

    def _drain(self) -> None:
        while not self._events.empty():
            kind, value = self._events.get()
            if kind == "line":
                self._state.listener.hear(value)

    def _pump(self, source: IO[bytes], target: IO[bytes]) -> threading.Thread:
        thread = threading.Thread(target=self._copy, args=(source, target), daemon=True)
        thread.start()
        return thread

    def _copy(self, source: IO[bytes], target: IO[bytes]) -> None:
        rest, alive = b"", True
        while chunk := os.read(source.fileno(), 1 << 16):
            if alive:
                alive = _write(target, chunk)
            *lines, rest = (rest + chunk.replace(b"\r", b"\n")).split(b"\n")
            rest = rest[-(1 << 16) :]
            for line in lines:
                if line.strip():
                    self._events.put(("line", line.decode(errors="replace")))


def _write(target: IO[bytes], chunk: bytes) -> bool:
    """Write and flush; return False once the reader is gone: the engine goes on without one."""
    try:
        target.write(chunk)
        target.flush()
    except (OSError, ValueError):
        return False
    return True


@contextlib.contextmanager
def _signals(events: queue.SimpleQueue[tuple[str, Any]]) -> Iterator[None]:
    """While it lasts, SIGINT, SIGTERM and SIGHUP become events. Only the main thread may install handlers."""

    def note(number: int, _frame: FrameType | None) -> None:
        events.put(("signal", number))

    mine = threading.current_thread() is threading.main_thread()
    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP) if mine}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
