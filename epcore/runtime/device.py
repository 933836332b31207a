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
            "this scale trains on a GPU and there is none here: on a CPU its trainings would "
            "take years",
            "use scale demo, a machine with a GPU or, if you mean it, no --require-gpu, for "
            "Snakemake --config allow_cpu=true",
        )
    return torch.device("cpu")


def set_precision(precision: str) -> None:
    """What a GPU does with float32 convolutions, of backward too, from now on in this process.

    `tf32` lets them round their inputs to 10 bits of mantissa (NVIDIA Ampere and newer), the others
    do not; torch's own default is to round. All other products, those of propagation among them,
    stay in full precision.
    """
    # Not by `cudnn.conv.fp32_precision`: after that torch.compile and torch.export, which read this
    # setting, end in an error.
    torch.backends.cudnn.allow_tf32 = precision == "tf32"


def room_for_images(device: torch.device) -> int:
    """Bytes of the device that a data set may take: a quarter of a GPU's memory, none of a CPU's.

    The rest is the network's, its activations at the paper's batch of 512 images included.
    """
    if device.type != "cuda":
        return 0
    return int(torch.cuda.get_device_properties(device).total_memory) // 4


def computes_tf32(device: torch.device) -> bool:
    """Whether the device multiplies TF32 in hardware."""
    return device.type == "cuda" and torch.cuda.get_device_capability(device) >= (8, 0)


def computes_bf16(device: torch.device) -> bool:
    """Whether to expect that the device is faster in bfloat16 than in fp32.

    A processor that emulates it is not. Nor was Intel's without AMX that we measured, which has
    instructions for it; benchmarks/precision.py compares the two.
    """
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    has = torch.cpu.get_capabilities()
    intel = str(has.get("cpu_name")).startswith("Intel")
    return bool(has.get("amx_bf16") or (has.get("avx512_bf16") and not intel))


def autocast(device: torch.device, precision: str) -> AbstractContextManager[object]:
    """Mixed precision if `precision` is bf16 and the device gains by it, else plain float32."""
    if precision == "bf16" and computes_bf16(device):
        return torch.autocast(device.type, dtype=torch.bfloat16)
    return contextlib.nullcontext()


def describe(device: torch.device, precision: str) -> dict[str, str]:
    """For `meta.json`: the device and the precision really used."""
    computes = {"bf16": computes_bf16, "tf32": computes_tf32}
    used = precision if precision in computes and computes[precision](device) else "fp32"
    if device.type == "cuda":
        return {"device": torch.cuda.get_device_name(device), "precision": used}
    return {"device": str(torch.cpu.get_capabilities().get("cpu_name", "cpu")), "precision": used}


def place(module: nn.Module, device: torch.device) -> None:
    """Moves a network to the device, weights in channels-last order."""
    # nn.Module.to has no typed overload for the memory format alone.
    module.to(device=device, memory_format=torch.channels_last)  # type: ignore[call-overload]
