"""Pages, attention over them, sampling, and the scheduler's choices: each against what it must equal."""

from __future__ import annotations

import itertools
import types
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sglang.srt.distributed.parallel_state import GroupCoordinator
from sglang.srt.environ import envs
from sglang.srt.layers.attention.torch_native_backend import TorchNativeAttnBackend
from sglang.srt.layers.logits_processor import LogitsProcessorOutput
from sglang.srt.layers.sampler import Sampler
from sglang.srt.managers.io_struct import TokenizedGenerateReqInput
from sglang.srt.managers.schedule_batch import Req, ScheduleBatch
from sglang.srt.managers.scheduler import Scheduler
from sglang.srt.mem_cache.allocator import PagedTokenToKVPoolAllocator
from sglang.srt.mem_cache.memory_pool import MHATokenToKVPool, ReqToTokenPool
from sglang.srt.model_executor.forward_batch_info import ForwardBatch, ForwardMode
from sglang.srt.sampling.sampling_params import SamplingParams


def request(rid: str, length: int = 3, seed: int = 0, **params: Any) -> Req:
    given_params = SamplingParams(**{"temperature": 0.0, "max_new_tokens": 8, **params})
    return Req(TokenizedGenerateReqInput(rid, list(range(1, length + 1)), given_params), end_ids={99}, limit=1000, seed=seed)


# -- pages


def allocator(size: int = 64, page: int = 4) -> PagedTokenToKVPoolAllocator:
    return PagedTokenToKVPoolAllocator(size, page_size=page, dtype=torch.float32, device="cpu", kvcache=None)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["new", "grow", "free"]), st.integers(1, 20)), max_size=60), st.sampled_from([1, 4, 16]))
def test_no_row_has_two_owners_and_none_is_lost(steps: list[tuple[str, int]], page: int) -> None:
    pages = allocator(64, page)
    owned: list[list[int]] = []
    for what, number in steps:
        if what == "new":
            rows = pages.alloc_extend(torch.tensor([0]), [0], torch.tensor([number]), [number], [-1], number)
            if rows is not None:
                owned.append(rows.tolist())
        elif what == "grow" and owned:
            end = len(owned[-1]) + 1
            rows = pages.alloc_decode(torch.tensor([end]), [end], [owned[-1][-1]])
            if rows is not None:
                owned[-1] += rows.tolist()
        elif what == "free" and owned:
            pages.free(torch.tensor(owned.pop(number % len(owned))))
        every = [row for rows in owned for row in rows]
        assert len(every) == len(set(every))
        assert all(page <= row < 64 + page for row in every), "page 0 belongs to padding"
        assert pages.available_size() == 64 - sum(-(-len(rows) // page) * page for rows in owned)
    for rows in owned:
        assert all(later == row + 1 or later % page == 0 for row, later in itertools.pairwise(rows))


def test_too_few_pages_take_nothing() -> None:
    pages = allocator(8, 4)
    assert pages.alloc_extend(torch.tensor([0, 0]), [0, 0], torch.tensor([5, 5]), [5, 5], [-1, -1], 10) is None
    assert pages.available_size() == 8
    assert pages.alloc(8) is not None
    assert pages.alloc(1) is None
    pages.clear()
    assert pages.available_size() == 8


def test_a_sorting_allocator_hands_out_low_pages_first() -> None:
    pages = PagedTokenToKVPoolAllocator(16, page_size=4, dtype=torch.float32, device="cpu", kvcache=None, need_sort=True)
    first, second = pages.alloc(4), pages.alloc(4)
    assert first is not None
    assert second is not None
    pages.free(second)
    pages.free(first)
    assert pages.alloc(4).tolist() == first.tolist()  # type: ignore[union-attr]


# -- attention

LAYER = types.SimpleNamespace(tp_q_head_num=4, tp_k_head_num=2, qk_head_dim=8, v_head_dim=8, head_dim=8, scaling=8**-0.5, layer_id=0)


def plain(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Attention of the last tokens over all, written out."""
    k, v = k.repeat_interleave(2, 1), v.repeat_interleave(2, 1)
    scores = torch.einsum("qhd,khd->hqk", q, k) * LAYER.scaling
    allowed = torch.ones(len(q), len(k)).tril(len(k) - len(q)).bool()
    return torch.einsum("hqk,khd->qhd", scores.masked_fill(~allowed, -torch.inf).softmax(-1), v).reshape(len(q), -1)


def test_paged_attention_equals_attention_written_out() -> None:
    torch.manual_seed(0)
    lengths = [5, 1, 9]
    pool = MHATokenToKVPool(64, 4, torch.float32, 2, 8, 1, "cpu")
    table, pages = ReqToTokenPool(4, 32, "cpu"), allocator()
    data = [[torch.randn(n + 2, heads, 8) for heads in (4, 2, 2)] for n in lengths]
    slots = table.alloc([request(str(index)) for index, _ in enumerate(lengths)])
    assert slots is not None
    backend = TorchNativeAttnBackend(types.SimpleNamespace(device="cpu"))

    def step(starts: list[int], ends: list[int], mode: ForwardMode) -> None:
        counts = [end - start for start, end in zip(starts, ends, strict=True)]
        last = [int(table.req_to_token[slot, start - 1]) if start else -1 for slot, start in zip(slots, starts, strict=True)]
        rows = pages.alloc_extend(torch.tensor(starts), starts, torch.tensor(ends), ends, last, sum(counts))
        assert rows is not None
        for slot, start, part in zip(slots, starts, rows.split(counts), strict=True):
            table.write((slot, slice(start, start + len(part))), part)
        q, k, v = (torch.cat([d[i][start:end] for d, start, end in zip(data, starts, ends, strict=True)]) for i in range(3))
        batch = ForwardBatch(mode, rows, rows, torch.tensor(slots), torch.tensor(ends), ends, counts, rows, table, pool, backend)
        backend.init_forward_metadata(batch)
        got = backend.forward(q, k, v, LAYER, batch).split(counts)
        for piece, d, start, end in zip(got, data, starts, ends, strict=True):
            torch.testing.assert_close(piece, plain(d[0][start:end], d[1][:end], d[2][:end]))

    step([0, 0, 0], lengths, ForwardMode.EXTEND)
    step(lengths, [n + 1 for n in lengths], ForwardMode.DECODE)
    step([n + 1 for n in lengths], [n + 2 for n in lengths], ForwardMode.EXTEND)  # with a cached prefix


# -- sampling


def draw(logits: torch.Tensor, reqs: list[Req]) -> torch.Tensor:
    return Sampler()(LogitsProcessorOutput(logits), reqs, False, None, None, torch.zeros(len(reqs)))  # type: ignore[no-any-return]


def sample(logits: list[float], count: int = 400, **params: Any) -> list[int]:
    reqs = [request("r", seed=seed, **params) for seed in range(count)]
    return draw(torch.tensor([logits] * count), reqs).tolist()


def test_temperature_zero_takes_the_likeliest() -> None:
    assert set(sample([0.0, 3.0, 1.0], temperature=0)) == {1}


def test_the_shares_follow_the_probabilities() -> None:
    drawn = sample([0.0, 1.0, 2.0], count=4000, temperature=1.0)
    want = torch.tensor([0.0, 1.0, 2.0]).softmax(0)
    got = torch.bincount(torch.tensor(drawn), minlength=3) / 4000
    torch.testing.assert_close(got, want, atol=0.03, rtol=0)


@pytest.mark.parametrize(
    ("params", "possible"),
    [
        ({"top_k": 2}, {2, 3}),
        ({"top_k": 1}, {3}),
        ({"top_p": 0.6}, {3}),  # the likeliest has 0.644
        ({"top_p": 0.7}, {2, 3}),
        ({"min_p": 0.3}, {2, 3}),  # at least 0.3 of the likeliest
        ({"top_k": 3, "top_p": 0.7}, {2, 3}),
        ({}, {0, 1, 2, 3}),
    ],
)
def test_filters_leave_what_they_should(params: Any, possible: set[int]) -> None:
    assert set(sample([0.0, 1.0, 2.0, 3.0], temperature=1.0, **params)) == possible


def test_what_already_reaches_top_p_is_enough() -> None:
    assert set(sample([0.0, 0.0, -50.0], temperature=1.0, top_p=0.5)) == {0}


def test_a_draw_depends_on_seed_and_step_alone() -> None:
    logits = torch.randn(3, 50)
    alone, crowd = request("a", temperature=1.0, sampling_seed=5), [request("b", temperature=1.0), request("c")]
    want = draw(logits[:1], [alone])[0]
    assert draw(logits, [request("a", temperature=1.0, sampling_seed=5), *crowd])[0] == want
    first = alone.random()
    alone.output_ids.append(1)
    assert alone.random() != first


@pytest.mark.parametrize(
    ("params", "logits", "token"),
    [
        ({"frequency_penalty": 0.4}, [2.0, 3.0, 0.0], 1),  # 3 - 2 x 0.4 = 2.2
        ({"frequency_penalty": 0.6}, [2.0, 3.0, 0.0], 0),  # 3 - 2 x 0.6 = 1.8
        ({"presence_penalty": 0.9}, [2.0, 3.0, 0.0], 1),  # 2.1, however often
        ({"presence_penalty": 1.1}, [2.0, 3.0, 0.0], 0),
        ({"repetition_penalty": 1.4}, [2.0, 3.0, 0.0], 1),  # 3 / 1.4 = 2.1
        ({"repetition_penalty": 1.6}, [2.0, 3.0, 0.0], 0),
        ({"repetition_penalty": 2.0}, [-3.0, -2.0, -9.0], 0),  # -2 x 2 = -4
        ({"frequency_penalty": -1.5}, [2.0, 0.0, 1.0], 1),
    ],
)
def test_penalties_weigh_what_the_answer_has_had(params: Any, logits: list[float], token: int) -> None:
    penalized, neighbour = request("a", **params), request("b")
    penalized.output_ids = neighbour.output_ids = [1, 1]
    want = int(torch.tensor(logits).argmax())
    assert draw(torch.tensor([logits] * 2), [penalized, neighbour]).tolist() == [token, want]


# -- requests


def test_a_request_ends_by_length_token_and_text() -> None:
    decode = lambda ids: "".join(map(chr, ids))  # noqa: E731
    by_length = request("a", max_new_tokens=2)
    by_length.append(65, decode)
    assert not by_length.finished()
    by_length.append(66, decode)
    assert by_length.finished_reason == {"type": "length", "length": 2}
    by_token, through = request("b"), request("c", ignore_eos=True)
    for req in (by_token, through):
        req.append(99, decode)
    assert by_token.finished_reason == {"type": "stop", "matched": 99}
    assert not through.finished()
    by_text = request("d", stop=["xyz"])
    for char in "axyz":
        by_text.append(ord(char), decode)
    assert by_text.finished_reason == {"type": "stop", "matched": "xyz"}


# -- the scheduler's choices


class Rows:
    """A worker without a model."""

    def __init__(self, tokens: int, slots: int) -> None:
        self.model_runner = types.SimpleNamespace(
            req_to_token_pool=ReqToTokenPool(slots, 64, "cpu"), token_to_kv_pool_allocator=allocator(tokens), device="cpu"
        )


def scheduler(tokens: int = 32, slots: int = 8, **arguments: Any) -> Any:
    made = Scheduler.__new__(Scheduler)
    made.server_args = types.SimpleNamespace(
        page_size=4, max_running_requests=slots, max_prefill_tokens=100, stream_interval=1, **arguments
    )
    made.tp_worker = Rows(tokens, slots)
    made.allocator = made.tp_worker.model_runner.token_to_kv_pool_allocator
    made.waiting_queue, made.running, made.retracted = __import__("collections").OrderedDict(), [], 0
    made.max_total_num_tokens, made.tokenizer = tokens, types.SimpleNamespace(decode=lambda ids: "")
    made.told = []
    made.send_outputs = made.told.extend
    return made


def queue(made: Any, *reqs: Req) -> None:
    made.waiting_queue.update({req.rid: req for req in reqs})


def advance(made: Any) -> Any:
    batch = made.get_next_batch_to_run(ScheduleBatch(made.running, made.tp_worker), None)
    if batch is not None:
        made.process_batch_result(batch, [7] * len(batch.reqs))
    return batch


def test_prompts_come_first_in_their_order_within_the_limits() -> None:
    made = scheduler(tokens=64)
    made.server_args.max_prefill_tokens = 10
    queue(made, request("a", 6), request("b", 4), request("c", 4))
    assert [req.rid for req in advance(made).reqs] == ["a", "b"]
    assert [req.rid for req in advance(made).reqs] == ["c"]
    batch = advance(made)
    assert batch.is_decode
    assert [req.rid for req in batch.reqs] == ["a", "b", "c"]


def test_a_long_prompt_runs_alone_and_nobody_overtakes() -> None:
    made = scheduler(tokens=64)
    made.server_args.max_prefill_tokens = 10
    queue(made, request("long", 30), request("short", 2))
    assert [req.rid for req in advance(made).reqs] == ["long"]


def test_when_pages_run_short_the_youngest_starts_over_and_all_finish() -> None:
    made = scheduler(tokens=24)
    reqs = [request(name, 6, max_new_tokens=10) for name in ("a", "b")]
    queue(made, *reqs)
    steps = 0
    while made.running or made.waiting_queue:
        assert advance(made) is not None, "stuck"
        steps += 1
        assert steps < 100
    assert made.retracted >= 1
    assert [len(req.output_ids) for req in reqs] == [10, 10]
    assert made.allocator.available_size() == 24
    assert made.tp_worker.model_runner.req_to_token_pool.available_size() == 8
    assert [req.rid for req in made.told if req.finished()] == ["a", "b"]


def test_who_starts_over_goes_before_those_who_wait() -> None:
    made = scheduler(tokens=24)
    queue(made, request("a", 6), request("b", 6))
    advance(made)
    made.retract(made.running.pop())
    queue(made, request("late", 2))
    made.waiting_queue.move_to_end("late")
    assert list(made.waiting_queue) == ["b", "late"]
    made.retract(made.running.pop())
    assert list(made.waiting_queue) == ["a", "b", "late"]
    assert made.allocator.available_size() == 24


def test_an_aborted_request_gives_its_pages_back_before_the_next_step() -> None:
    made = scheduler()
    queue(made, request("a", 6), request("b", 6))
    advance(made)
    made.abort_request(types.SimpleNamespace(rid="a"))
    batch = advance(made)
    assert [req.rid for req in batch.reqs] == ["b"]
    assert made.allocator.available_size() == 32 - 8
    queue(made, request("c", 20))
    made.abort_request(types.SimpleNamespace(rid="c"))
    made.abort_request(types.SimpleNamespace(rid="nobody"))
    assert not made.waiting_queue
    assert [req.rid for req in made.told if req.finished_reason and req.finished_reason["type"] == "abort"] == ["a", "c"]


def test_a_batch_that_does_not_fit_takes_nothing() -> None:
    worker = Rows(tokens=8, slots=1)
    assert not ScheduleBatch([request("a", 12)], worker).prepare_for_extend()
    assert not ScheduleBatch([request("a", 2), request("b", 2)], worker).prepare_for_extend()
    assert worker.model_runner.token_to_kv_pool_allocator.available_size() == 8


# -- ranks and variables


def test_a_group_of_one_returns_what_it_is_given() -> None:
    group = GroupCoordinator(0, 1, "cpu")
    tensor = torch.arange(3.0)
    assert group.all_reduce(tensor) is group.all_gather(tensor) is tensor
    assert group.broadcast_object("x") == "x"
    assert group.min_over_ranks(5) == 5


def test_variables_are_read_when_asked_and_the_older_name_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SGLANG_PLATFORM", raising=False)
    assert envs.SGLANG_PLATFORM.get() == ""
    with envs.SGLANG_PLATFORM.override("new"):
        assert envs.SGLANG_PLATFORM.is_set()
        assert envs.SGLANG_PLATFORM.get() == "new"
        monkeypatch.setenv("SGL_PLATFORM", "old")
        assert envs.SGLANG_PLATFORM.get() == "old"
    assert not envs.SGLANG_PLATFORM.is_set()
    with pytest.raises(RuntimeError, match="get"):
        bool(envs.SGLANG_PLATFORM)
