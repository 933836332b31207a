"""What a precision means, and what is said of it."""

import pytest
import torch

from epcore.device import autocast, describe, room_for_images, set_precision

CPU = torch.device("cpu")


@pytest.fixture
def convolutions():
    """Torch's setting of float32 convolutions, which the test may change."""
    setting = torch.backends.cudnn.conv
    before = setting.fp32_precision
    yield setting
    setting.fp32_precision = before


@pytest.mark.parametrize(
    ("precision", "used"), [("fp32", "ieee"), ("tf32", "tf32"), ("bf16", "ieee")]
)
def test_convolutions_round_only_if_the_scale_says_so(convolutions, precision, used):
    """Torch alone would round them in any case."""
    set_precision(precision)
    assert convolutions.fp32_precision == used
    assert torch.backends.cuda.matmul.fp32_precision != "tf32"


def test_a_cpu_computes_tf32_as_fp32_and_the_meta_file_says_so():
    assert describe(CPU, "tf32")["precision"] == "fp32"
    with autocast(CPU, "tf32"):
        assert not torch.is_autocast_enabled("cpu")


def test_images_stay_in_the_store_on_a_cpu():
    assert room_for_images(CPU) == 0
