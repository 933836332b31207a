"""Where and in which precision a network runs."""

import contextlib
from contextlib import AbstractContextManager

import torch
from torch import nn

from epcore.errors import UserError


def choose_device(require_gpu: bool = False) -> torch.device:
    """The GPU if there is one, else the CPU.

    Raises:
        UserError: if a GPU is required and there is none.
    """
    if torch.cuda.is_available():
        return torch.device("cuda")
    if require_gpu:
        raise UserError(
            "this scale trains on a GPU and there is none here: on a CPU its trainings would take "
            "years; use --config scale=demo, a machine with a GPU, or, if you mean it, "
            "--config allow_cpu=true"
        )
    return torch.device("cpu")


def computes_bf16(device: torch.device) -> bool:
    """Whether the device multiplies bfloat16 in hardware; emulation would be slower than fp32."""
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    capabilities = torch.cpu.get_capabilities()
    return bool(capabilities.get("avx512_bf16") or capabilities.get("amx_bf16"))


def autocast(device: torch.device, precision: str) -> AbstractContextManager[object]:
    """Mixed precision if `precision` is bf16 and the device has it, else plain float32."""
    if precision == "bf16" and computes_bf16(device):
        return torch.autocast(device.type, dtype=torch.bfloat16)
    return contextlib.nullcontext()


def describe(device: torch.device, precision: str) -> dict[str, str]:
    """For `meta.json`: the device and the precision really used."""
    used = "bf16" if precision == "bf16" and computes_bf16(device) else "fp32"
    if device.type == "cuda":
        return {"device": torch.cuda.get_device_name(device), "precision": used}
    return {"device": str(torch.cpu.get_capabilities().get("cpu_name", "cpu")), "precision": used}


def place(module: nn.Module, device: torch.device) -> None:
    """Moves a network to the device, weights in channels-last order."""
    # nn.Module.to has no typed overload for the memory format alone.
    module.to(device=device, memory_format=torch.channels_last)  # type: ignore[call-overload]
