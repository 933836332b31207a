"""What a precision means, and what is said of it."""

import pytest
import torch

from epcore import EmbeddingPropagation
from epcore.runtime.device import autocast, describe, room_for_images, set_precision

CPU = torch.device("cpu")


@pytest.fixture
def restored():
    """Torch's setting of float32 convolutions, which the test may change."""
    before = torch.backends.cudnn.allow_tf32
    yield
    torch.backends.cudnn.allow_tf32 = before


@pytest.mark.parametrize(
    ("precision", "rounds"), [("fp32", False), ("tf32", True), ("bf16", False)]
)
def test_convolutions_round_only_if_the_scale_says_so(restored, precision, rounds):
    """Torch alone would round them in any case."""
    set_precision(precision)
    assert torch.backends.cudnn.allow_tf32 == rounds
    assert (torch.backends.cudnn.conv.fp32_precision == "tf32") == rounds
    assert torch.backends.cuda.matmul.fp32_precision != "tf32"


@pytest.mark.parametrize("precision", ["fp32", "tf32", "bf16"])
def test_a_layer_can_be_exported_and_compiled_afterwards(restored, precision):
    set_precision(precision)
    features = torch.randn(2, 9, 4)
    torch.export.export(EmbeddingPropagation(), (features,))
    torch.compile(EmbeddingPropagation(), backend="eager")(features)


def test_a_cpu_computes_tf32_as_fp32_and_the_meta_file_says_so():
    assert describe(CPU, "tf32")["precision"] == "fp32"
    with autocast(CPU, "tf32"):
        assert not torch.is_autocast_enabled("cpu")


@pytest.mark.parametrize(
    ("has", "used"),
    [
        ({"cpu_name": "AMD EPYC", "avx512_bf16": True}, "bf16"),
        ({"cpu_name": "Intel Xeon", "avx512_bf16": True, "amx_bf16": True}, "bf16"),
        ({"cpu_name": "Intel Xeon", "avx512_bf16": True, "amx_bf16": False}, "fp32"),
        ({"cpu_name": "Intel Xeon", "avx512_f": True}, "fp32"),
        ({}, "fp32"),
    ],
)
def test_a_processor_computes_bf16_only_where_that_is_faster(monkeypatch, has, used):
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: has)
    assert describe(CPU, "bf16")["precision"] == used
    with autocast(CPU, "bf16"):
        assert torch.is_autocast_enabled("cpu") == (used == "bf16")


def test_images_stay_in_the_store_on_a_cpu():
    assert room_for_images(CPU) == 0
