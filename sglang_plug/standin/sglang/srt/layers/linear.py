"""Linear layers, split over the tensor-parallel ranks, each computing by its quantization method."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from ..distributed.parallel_state import get_tp_group
from .quantization.base_config import LinearMethodBase, set_weight_attrs


class UnquantizedLinearMethod(LinearMethodBase):
    """Weights as they are."""

    def create_weights(
        self,
        layer: nn.Module,
        input_size_per_partition: int,
        output_partition_sizes: list[int],
        input_size: int,
        output_size: int,
        params_dtype: torch.dtype,
        **extra_weight_attrs: Any,
    ) -> None:
        weight = nn.Parameter(torch.empty(sum(output_partition_sizes), input_size_per_partition, dtype=params_dtype), requires_grad=False)
        set_weight_attrs(weight, extra_weight_attrs)
        layer.register_parameter("weight", weight)

    def apply(self, layer: Any, x: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
        return F.linear(x, layer.weight, bias)


class LinearBase(nn.Module):
    """What all linear layers share.

    Args:
        input_size: this rank's part of the input.
        output_sizes: this rank's part of each output.
        full: input and output over all ranks.
        bias: whether there is one.
        quant_config: the model's quantization, or None.
        prefix: the layer's name in the model.
    """

    def __init__(self, input_size: int, output_sizes: list[int], full: tuple[int, int], bias: bool, quant_config: Any, prefix: str) -> None:
        super().__init__()
        self.prefix = prefix
        self.output_sizes = output_sizes
        method = quant_config.get_quant_method(self, prefix) if quant_config is not None else None
        self.quant_method = method or UnquantizedLinearMethod()
        self.quant_method.create_weights(self, input_size, output_sizes, *full, torch.get_default_dtype(), weight_loader=self.weight_loader)
        self.bias: nn.Parameter | None = None
        if bias:
            self.bias = nn.Parameter(torch.empty(sum(output_sizes)), requires_grad=False)
            set_weight_attrs(self.bias, {"weight_loader": self.weight_loader})

    def weight_loader(self, param: nn.Parameter, loaded: torch.Tensor, shard: Any = None) -> None:
        """Copy this rank's part of a weight from the model folder into `param`.

        Raises:
            ValueError: the shapes do not fit.
        """
        part, place = self.part(loaded, shard), self.place(param, shard)
        if part.shape != place.shape:
            raise ValueError(f"{self.prefix}: a weight of shape {tuple(loaded.shape)} does not fit, {tuple(place.shape)} is wanted here")
        place.copy_(part)

    def part(self, loaded: torch.Tensor, shard: Any) -> torch.Tensor:
        """Return this rank's part of a loaded weight."""
        raise NotImplementedError

    def place(self, param: nn.Parameter, shard: Any) -> torch.Tensor:
        """Return where in the parameter that part goes."""
        return param.data


class ColumnParallelLinear(LinearBase):
    """One or several outputs of the same input, each split over the ranks."""

    def __init__(
        self, input_size: int, outputs: list[int], bias: bool, quant_config: Any, prefix: str, replicas: list[int] | None = None
    ) -> None:
        group = get_tp_group()
        self_sizes = [size * times // group.world_size for size, times in zip(outputs, replicas or [1] * len(outputs), strict=True)]
        super().__init__(input_size, self_sizes, (input_size, sum(outputs)), bias, quant_config, prefix)
        self.replicas = replicas or [1] * len(outputs)

    def part(self, loaded: torch.Tensor, shard: Any) -> torch.Tensor:
        size = self.output_sizes[shard or 0]
        start = get_tp_group().rank // self.replicas[shard or 0] * size  # neighbours share what is too small to be split
        return loaded[start : start + size]

    def place(self, param: nn.Parameter, shard: Any) -> torch.Tensor:
        start = sum(self.output_sizes[: shard or 0])
        return param.data[start : start + self.output_sizes[shard or 0]]

    def forward(self, input_: torch.Tensor) -> torch.Tensor:
        """Return this rank's part of the outputs, side by side."""
        return self.quant_method.apply(self, input_, self.bias)


class QKVParallelLinear(ColumnParallelLinear):
    """Queries, keys and values; key and value heads are copied where there are fewer than ranks."""

    def __init__(self, hidden_size: int, head_dim: int, heads: int, kv_heads: int, bias: bool, quant_config: Any, prefix: str) -> None:
        copies = max(1, get_tp_group().world_size // kv_heads)
        sizes = [heads * head_dim, kv_heads * head_dim, kv_heads * head_dim]
        super().__init__(hidden_size, sizes, bias, quant_config, prefix, replicas=[1, copies, copies])


class RowParallelLinear(LinearBase):
    """The input is split over the ranks; their results are added up."""

    def __init__(self, input_size: int, output_size: int, bias: bool, quant_config: Any, prefix: str) -> None:
        mine = input_size // get_tp_group().world_size
        super().__init__(mine, [output_size], (input_size, output_size), bias, quant_config, prefix)
        self.input_size = mine

    def part(self, loaded: torch.Tensor, shard: Any) -> torch.Tensor:
        if loaded.dim() == 1:
            return loaded
        start = get_tp_group().rank * self.input_size
        return loaded[:, start : start + self.input_size]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the whole output, on every rank."""
        group = get_tp_group()
        return group.all_reduce(self.quant_method.apply(self, x, self.bias if group.rank == 0 else None))
