"""Imports torchvision, also where its operators do not load beside a CPU torch."""

import torch

try:
    import torchvision
except RuntimeError:  # operator torchvision::nms does not exist
    LIBRARY = torch.library.Library("torchvision", "FRAGMENT")  # declared as long as it lives
    for name in ("nms", "qnms"):
        LIBRARY.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    import torchvision  # noqa: F401
