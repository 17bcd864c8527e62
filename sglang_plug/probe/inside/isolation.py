"""One call of a stranger's code in a process of its own, whatever it does: raise, exit, crash, hang, flood, leave children.

That process (a fork; `spawning.py` makes it an interpreter) answers through a shared memory map, which no closed descriptor, print or
left-over child can spoil; its session is killed afterwards.
"""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
import re
import select
import signal
import struct
import sys
import time
from json import dumps, loads  # bound before a stranger can replace them; so is the way out
from os import _exit, getpid

TYPE_CHECKING = False  # typing costs more to import than all of this file
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import IO, Any, NoReturn

    Facts = dict[str, Any]


WATCHED: list[int] = []  # what to give up for when it hangs up: the descriptor of the socket to the tool
ROOM = 8 << 20
OUTPUT_HEAD = 32 << 10
GRACE = 0.3  # seconds between the stack dump of a hanging fork and its end
LOOK = 0.2  # seconds between two looks at the clock
HIGH = 160
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
HERE = os.path.dirname(os.path.abspath(__file__))
CHILD = os.path.join(os.path.dirname(HERE), "child.py")
FORKED = "(a fork of its own process)"  # what else would bear our command line
BROKEN = "broken"  # key of an answer that says why there is none
HEADER = struct.Struct("=q")
FRAME = re.compile(r'^  File "(.*)", line (\d+) in (.*)$')


def adopt_orphans() -> None:
    """Become the parent of whatever daemon a plugin leaves behind, so that it can be found and ended (Linux; elsewhere without effect)."""
    prctl(PR_SET_CHILD_SUBREAPER, 1)


def isolated(task: Callable[[], Any], timeout: float, memory: int | None = None) -> Facts:
    """Run `task()` (which returns a JSON value) in a fork and return how it ended.

    Args:
        task: runs in the fork; what it returns is `value` of the reply.
        timeout: seconds until it is told to show its stack and killed.
        memory: bytes of data it may allocate.

    Returns:
        {"value", "ended": {"kind": "ok" | "exit" | "signal" | "timeout" | "too_large" | "broken", …, "stack"}, "output": {"bytes", "head"},
        "leftovers": [{"pid", "command"}], "seconds"}.
    """
    room = mmap.mmap(-1, ROOM)
    dump = _scratch_file()
    read, write = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    started = time.perf_counter()
    pid = os.fork()
    if pid == 0:
        _become_subject(task, room, dump, write, (timeout, memory))
    os.close(write)
    deadline = time.monotonic() + timeout + GRACE
    try:
        status, timed_out, output = supervise(pid, read, lambda: deadline)
    finally:
        os.close(read)
    seconds = time.perf_counter() - started
    facts = conclude(pid, status, room, dump, timeout if timed_out else None)
    return {**facts, "output": output, "seconds": seconds}


def conclude(pid: int, status: int, room: mmap.mmap, dump: IO[bytes], timed_out: float | None) -> Facts:
    """End what a dead subject left behind, close its map and its file; return {"value", "ended", "leftovers"}.

    `timed_out` is the limit in seconds that it overran, or None.
    """
    leftovers = end_descendants(pid)
    value: Any = _read_answer(room)
    ended: Facts = _explain(status, timed_out=timed_out, answered=value is not None)
    if isinstance(value, dict) and "too_large" in value:
        ended = {"kind": "too_large", "bytes": value["too_large"]}
        value = None
    elif isinstance(value, dict) and value.keys() == {BROKEN} and ended["kind"] in {"ok", "exit"}:
        ended = {"kind": BROKEN, "error": value[BROKEN]}
        value = None
    if ended["kind"] != "ok":
        dump.seek(0)
        ended["stack"] = read_stack(dump.read(1 << 16).decode("utf-8", "replace"))
    dump.close()
    room.close()
    return {"value": value, "ended": ended, "leftovers": leftovers}


def lost() -> Facts:
    """Return the reply of whom nobody heard again."""
    return {"value": None, "ended": {"kind": "lost"}, "output": {"bytes": 0, "head": ""}, "leftovers": [], "seconds": 0.0}


def _scratch_file() -> IO[bytes]:
    """Return an unnamed file, closed by the caller."""
    if hasattr(os, "memfd_create"):
        return open(os.memfd_create("sglang-plug-stack"), "w+b")
    import tempfile  # dear to import: only where the system has nothing better

    return tempfile.TemporaryFile()


# --- in the fork ------------------------------------------------------------------------------------------------------------------


def _become_subject(task: Callable[[], Any], room: mmap.mmap, dump: IO[bytes], write: int, limits: tuple[float, int | None]) -> NoReturn:
    status = 70
    try:
        os.setsid()
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for watched in WATCHED:
            os.close(watched)
        point_streams(write)
        perform(task, room, dump, limits)
    finally:
        _exit(status)  # not reached, but for a failure of our own above


def perform(task: Callable[[], Any], room: mmap.mmap, dump: IO[bytes], limits: tuple[float, int | None]) -> NoReturn:
    """Run `task()` in this process, which is given up for it, within limits (seconds, bytes); write its answer and end."""
    status = 70
    try:
        _arm_stack_dump(dump, limits[0])
        if limits[1]:
            _limit_memory(limits[1])
        me = getpid()
        value = task()
        if getpid() == me:  # a plugin may fork and return twice; only the first process answers
            _write_answer(room, value)
        status = 0
    except BaseException as exc:  # ours, in an interpreter that a stranger may have spoilt: nothing but the words can be kept
        _write_answer(room, {BROKEN: f"{type(exc).__name__}: {str(exc)[:1000]}"})
    finally:
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        except Exception:
            status = status or 0  # the stranger closed its streams: what it printed is gone, what it answered is not
        _exit(status)


def point_streams(write: int) -> None:
    """Read from nothing, write to the supervisor's pipe."""
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(write, 1)
    os.dup2(write, 2)
    os.close(null)
    os.close(write)


def _arm_stack_dump(dump: IO[bytes], timeout: float) -> None:
    import faulthandler

    fd = fcntl.fcntl(dump.fileno(), fcntl.F_DUPFD_CLOEXEC, HIGH)
    faulthandler.enable(fd)
    faulthandler.dump_traceback_later(timeout, file=fd)


def _limit_memory(limit: int) -> None:
    import resource

    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))


def _write_answer(room: mmap.mmap, value: Any) -> None:
    data = dumps(value, default=repr).encode("ascii")
    if len(data) > ROOM - HEADER.size:
        data = dumps({"too_large": len(data)}).encode("ascii")
    room[HEADER.size : HEADER.size + len(data)] = data
    room[: HEADER.size] = HEADER.pack(len(data))  # last: an answer is whole or absent


# --- in the supervisor ------------------------------------------------------------------------------------------------------------


def supervise(pid: int, read: int, deadline: Callable[[], float]) -> tuple[int, bool, Facts]:
    """Drain a child's output until it ends or its time is up; return (wait status, timed out, output facts).

    `deadline` is asked again and again: an interpreter's time counts from when its subject begins, not from its start.
    """
    os.set_blocking(read, False)
    output: Facts = {"bytes": 0, "head": ""}
    head = bytearray()
    handle = _process_handle(pid)
    poller = select.poll()
    poller.register(read, select.POLLIN)
    for watched in WATCHED:
        poller.register(watched, select.POLLHUP)
    if handle is not None:
        poller.register(handle, select.POLLIN)
    status: int | None = None
    timed_out = False
    try:
        while status is None:
            left = deadline() - time.monotonic()
            if left <= 0:
                timed_out = True
                _kill_session(pid)
                status = os.waitpid(pid, 0)[1]
                break
            events = dict(poller.poll(min(left, LOOK if handle is not None else 0.02) * 1000))
            if any(watched in events for watched in WATCHED):
                end_descendants(pid)
                _exit(0)  # the tool is gone: nobody waits for an answer
            if read in events and not _drain(read, head, output):
                poller.unregister(read)
            done, code = os.waitpid(pid, os.WNOHANG)
            status = code if done else None
        _drain(read, head, output)
    finally:
        if handle is not None:
            os.close(handle)
    output["head"] = bytes(head).decode("utf-8", "replace")
    return status, timed_out, output


def _process_handle(pid: int) -> int | None:
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return None


def _drain(read: int, head: bytearray, output: Facts) -> bool:
    """Take what is there, keep the head, count the rest; False at the end of the stream."""
    for _ in range(64):  # a flood must not keep us from looking at the clock
        try:
            data = os.read(read, 1 << 16)
        except BlockingIOError:
            return True
        if not data:
            return False
        output["bytes"] += len(data)
        if len(head) < OUTPUT_HEAD:
            head.extend(data[: OUTPUT_HEAD - len(head)])
    return True


def _kill_session(pid: int) -> None:
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        try:
            os.kill(pid, signal.SIGKILL)  # before it became the leader of its own session
        except ProcessLookupError:
            return


def end_descendants(group: int | None = None) -> list[Facts]:
    """Kill what a fork left behind, orphans in sessions of their own included; return [{"pid", "command"}]."""
    leftovers: list[Facts] = []
    if not _has_children():
        return leftovers
    if group is not None:
        members = [pid for pid, _, session, dead in _processes() if session == group and not dead]
        leftovers += [{"pid": pid, "command": _command(pid)} for pid in members]
        _kill_session(group)
    for _ in range(100):  # a tree is cut from the top: each kill hands us the next level
        children = [(pid, dead) for pid, parent, _, dead in _processes() if parent == os.getpid()]
        for pid, dead in children:
            if not dead and all(pid != known["pid"] for known in leftovers):
                leftovers.append({"pid": pid, "command": _command(pid)})
            try:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
            except (ProcessLookupError, ChildProcessError):
                continue
        if not children:
            break
    return leftovers


def _has_children() -> bool:
    """Tell whether anything is left below us: as the adopter of orphans we are above every left-over process."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def _processes() -> Iterator[tuple[int, int, int, bool]]:
    """Yield (pid, parent, session, whether it is dead and unburied) of every process that can be seen (Linux; nothing elsewhere)."""
    try:
        names = os.listdir("/proc")
    except OSError:
        return
    for name in names:
        if name.isdigit():
            try:
                with open("/proc/" + name + "/stat", encoding="utf-8", errors="replace") as file:
                    fields = file.read().rsplit(")", 1)[1].split()
            except (OSError, IndexError):
                continue
            yield int(name), int(fields[1]), int(fields[3]), fields[0] == "Z"


def _command(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            words = [word.decode("utf-8", "replace") for word in file.read(400).split(b"\0")]
    except OSError:
        return ""
    return FORKED if CHILD in words else " ".join(words).strip()


def _read_answer(room: mmap.mmap) -> Any:
    (size,) = HEADER.unpack(room[: HEADER.size])
    try:
        return loads(room[HEADER.size : HEADER.size + size]) if size else None
    except ValueError:
        return {BROKEN: "its answer cannot be read"}


def _explain(status: int, *, timed_out: float | None, answered: bool) -> Facts:
    if timed_out is not None:
        return {"kind": "timeout", "seconds": timed_out}
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        return {"kind": "signal", "number": -code, "name": _signal_name(-code)}
    if answered and code == 0:
        return {"kind": "ok"}
    return {"kind": "exit", "code": code}


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def read_stack(text: str) -> list[Facts]:
    """Return the frames of the first thread in a faulthandler dump, innermost first, our own left out: [{"file", "line", "function"}]."""
    frames = []
    blocks = re.split(r"^(?:Current thread|Thread) .*\(most recent call first\):$", text, flags=re.MULTILINE)
    current = re.split(r"^Current thread .*$", text, flags=re.MULTILINE)
    block = current[1].split("\nThread ")[0] if len(current) > 1 else (blocks[-1] if len(blocks) > 1 else text)
    for line in block.splitlines():
        match = FRAME.match(line)
        if match and os.path.dirname(match.group(1)) != HERE:
            frames.append({"file": match.group(1), "line": int(match.group(2)), "function": match.group(3)})
    return frames


def data_size() -> int:
    """Return the bytes of data that this process holds; 0 where the system does not say."""
    try:
        with open("/proc/self/status", encoding="ascii", errors="replace") as file:
            sizes = [int(line.split()[1]) << 10 for line in file if line.startswith("VmData:")]
    except OSError:
        return 0
    return sizes[0] if sizes else 0


def prctl(option: int, value: int) -> None:
    """Set an attribute of this process (Linux; elsewhere without effect)."""
    if not sys.platform.startswith("linux"):
        return
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, int(value), 0, 0, 0) != 0 and ctypes.get_errno() != errno.EINVAL:
        sys.stderr.write(f"probe: prctl({option}) failed with errno {ctypes.get_errno()}\n")
