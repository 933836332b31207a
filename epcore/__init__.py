"""Embedding propagation for few-shot classification (Rodriguez et al., ECCV 2020).

`EmbeddingPropagation` and `LabelPropagation` are `torch.nn.Module`s. They are loaded on first
use, so that `import epcore.plan`, which every Snakemake process does, needs no torch.
"""

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = ["EmbeddingPropagation", "LabelPropagation"]

if TYPE_CHECKING:
    from epcore.propagation import EmbeddingPropagation, LabelPropagation


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'epcore' has no attribute {name!r}")
    from epcore import propagation

    return getattr(propagation, name)
