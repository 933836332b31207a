"""Imports torchvision where it is used, as the import takes seconds.

Beside a CPU build of torch its operators do not load, because they are linked with CUDA's; all else
of it works once their schemas are declared.
"""

import torch

try:
    import torchvision
except RuntimeError:  # operator torchvision::nms does not exist
    # Declared as long as it lives.
    LIBRARY = torch.library.Library("torchvision", "FRAGMENT")  # type: ignore[no-untyped-call]
    for name in ("nms", "qnms"):
        schema = f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
        LIBRARY.define(schema)  # type: ignore[no-untyped-call]
    import torchvision

BasicBlock = torchvision.models.resnet.BasicBlock
