{% if cookiecutter.srt %}
"""The KV cache's allocator for SGLang before 0.5.22, which asks the platform for one."""

from __future__ import annotations

from typing import Any

from sglang.srt.mem_cache.allocator import TokenToKVPoolAllocator


class OneTokenPages(TokenToKVPoolAllocator):
    """SGLang's own allocator of single tokens, in the shape in which a paged one is constructed."""

    def __init__(self, size: int, page_size: int = 1, **rest: Any) -> None:
        """Allocate `size` tokens.

        Raises:
            ValueError: larger pages were asked for.
        """
        if page_size != 1:
            raise ValueError(f"{{ cookiecutter.package }} serves with --page-size 1, not {page_size}")
        super().__init__(size, **rest)
{% endif %}
