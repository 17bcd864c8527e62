"""What a quantization method is: a configuration that gives each linear layer its method. A platform may bring its own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch


class QuantizeMethodBase(ABC):
    """How a layer keeps its weights and computes with them."""

    @abstractmethod
    def create_weights(
        self,
        layer: torch.nn.Module,
        input_size_per_partition: int,
        output_partition_sizes: list[int],
        input_size: int,
        output_size: int,
        params_dtype: torch.dtype,
        **extra_weight_attrs: Any,
    ) -> None:
        """Give the layer its parameters; each carries `weight_loader` of the extra attributes."""

    @abstractmethod
    def apply(self, layer: torch.nn.Module, x: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
        """Compute the layer."""

    def process_weights_after_loading(self, layer: torch.nn.Module) -> None:  # noqa: B027 - most methods change nothing
        """Change the loaded parameters into what `apply` uses."""


class LinearMethodBase(QuantizeMethodBase):
    """A method of linear layers."""


class QuantizationConfig(ABC):
    """One quantization method, configured for a model."""

    @classmethod
    @abstractmethod
    def from_config(cls, config: dict[str, Any]) -> QuantizationConfig:
        """Read the model folder's `quantization_config`, which may be empty."""

    @abstractmethod
    def get_quant_method(self, layer: torch.nn.Module, prefix: str) -> QuantizeMethodBase | None:
        """Return the method of the layer called `prefix`, None to leave it as it is."""


def set_weight_attrs(weight: torch.Tensor, attributes: dict[str, Any]) -> None:
    """Put attributes on a parameter."""
    for name, value in attributes.items():
        setattr(weight, name, value)
