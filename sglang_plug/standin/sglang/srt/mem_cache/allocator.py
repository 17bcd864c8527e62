"""Who owns which page of the KV cache. Page 0 is never handed out: padding writes there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Sequence


class PagedTokenToKVPoolAllocator:
    """Hands out whole pages; a request's last page fills up token by token.

    A platform's own allocator is made with the same arguments and answers the same calls.
    """

    def __init__(self, size: int, page_size: int, dtype: torch.dtype, device: Any, kvcache: Any, need_sort: bool = False) -> None:
        self.size = size
        self.page_size = page_size
        self.dtype = dtype
        self.device = device
        self.need_sort = need_sort
        self._kvcache = kvcache
        self.clear()

    def clear(self) -> None:
        """Take every page back."""
        self.free_pages = list(range(self.size // self.page_size, 0, -1))

    def available_size(self) -> int:
        """Return how many tokens fit into the free pages."""
        return len(self.free_pages) * self.page_size

    def get_kvcache(self) -> Any:
        """Return the pool whose pages these are."""
        return self._kvcache

    def alloc(self, need_size: int) -> torch.Tensor | None:
        """Take whole pages for `need_size` tokens and return their rows, or None when there are too few."""
        pages = self._take(-(-need_size // self.page_size))
        return (
            None if pages is None else self._rows([page * self.page_size + i for page in pages for i in range(self.page_size)][:need_size])
        )

    def alloc_extend(
        self,
        prefix_lens: torch.Tensor,
        prefix_lens_cpu: Sequence[int],
        seq_lens: torch.Tensor,
        seq_lens_cpu: Sequence[int],
        last_loc: Sequence[int],
        extend_num_tokens: int,
        num_new_pages: int | None = None,
    ) -> torch.Tensor | None:
        """Return rows for the positions from each prefix to each sequence's end, or None when pages are too few; then nothing is taken.

        Args:
            prefix_lens, seq_lens: on the device, for allocators that work there; the lists hold the same numbers.
            last_loc: the row of each prefix's last token, -1 where there is no prefix.
            extend_num_tokens: how many rows that makes.
        """
        size = self.page_size
        counts = [-(-end // size) - -(-start // size) for start, end in zip(prefix_lens_cpu, seq_lens_cpu, strict=True)]
        pages = self._take(sum(counts))
        if pages is None:
            return None
        fresh = iter(pages)
        rows: list[int] = []
        for start, end, row in zip(prefix_lens_cpu, seq_lens_cpu, last_loc, strict=True):
            for position in range(start, end):
                row = next(fresh) * size if position % size == 0 else row + 1  # noqa: PLW2901 - the row walks on
                rows.append(row)
        assert len(rows) == extend_num_tokens
        return self._rows(rows)

    def alloc_decode(self, seq_lens: torch.Tensor, seq_lens_cpu: Sequence[int], last_loc: Sequence[int]) -> torch.Tensor | None:
        """Return the row of each sequence's newest position, or None when pages are too few; then nothing is taken."""
        return self.alloc_extend(seq_lens - 1, [length - 1 for length in seq_lens_cpu], seq_lens, seq_lens_cpu, last_loc, len(seq_lens_cpu))

    def free(self, free_index: torch.Tensor) -> None:
        """Take back the pages of these rows: all rows of a request, so that no page is shared."""
        self.free_pages.extend(torch.unique(free_index // self.page_size).tolist())
        if self.need_sort:
            self.free_pages.sort(reverse=True)

    def _take(self, count: int) -> list[int] | None:
        if count > len(self.free_pages):
            return None
        return [self.free_pages.pop() for _ in range(count)]

    def _rows(self, rows: list[int]) -> torch.Tensor:
        return torch.tensor(rows, dtype=torch.int64, device=self.device)
