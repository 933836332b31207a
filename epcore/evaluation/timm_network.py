"""Networks of timm, with the weights and the view of pictures that belong to them.

Of timm are image towers too, such as those of CLIP and SigLIP (`vit_base_patch16_clip_224.openai`).
"""

import difflib
import textwrap
from functools import partial
from pathlib import Path

import torch
from PIL import Image
from torch import Tensor, nn

import epcore.vision  # noqa: F401  # timm imports torchvision
from epcore.data.pictures import read, to_rgb
from epcore.errors import UserError
from epcore.evaluation.image_network import TIMM, ImageNetwork
from epcore.files import check_exists


def of_timm(name: str, weights: Path | None, device: torch.device) -> ImageNetwork:
    """A network of timm without its last layer.

    Args:
        name: as timm calls it, `vit_small_patch14_dinov2`; behind a dot may stand which weights.
        weights: a file of them; without it, they come from timm's hub or its cache.
        device: where the network is put.

    Raises:
        UserError: if timm is not installed or does not know the name, or weights are not to be had
            or do not fit.
    """
    try:
        import timm
    except ModuleNotFoundError:
        raise UserError("timm is not installed", 'pip install ".[timm]" in a checkout') from None
    architecture, _, tag = name.partition(".")
    if not timm.is_model(architecture):
        near = difflib.get_close_matches(architecture, timm.list_models(), n=5)
        advice = f"did you mean {', '.join(near)}?" if near else "timm.list_models() has all"
        raise UserError(f"--backbone {TIMM}{name}: timm knows no {architecture}", advice)
    pretrained = timm.list_pretrained(architecture)
    if tag and name not in pretrained:
        raise UserError(
            f"--backbone {TIMM}{name}: timm has no such weights of {architecture}",
            f"it has {', '.join(pretrained) or 'none'}",
        )
    if weights is not None:
        check_exists(weights, "file of weights", "correct the name")
    elif not pretrained:
        raise UserError(
            f"--backbone {TIMM}{name}: timm has no weights of it", "give a file with --weights"
        )
    source = "timm's hub" if weights is None else str(weights)
    try:
        module = timm.create_model(name, pretrained=weights is None, num_classes=0)
        if weights is not None:
            _fill(module, timm.models.load_state_dict(str(weights)))
    except Exception as error:  # timm, torch, safetensors and the hub each raise their own
        reason = textwrap.shorten(str(error), 160) or type(error).__name__
        raise UserError(
            f"--backbone {TIMM}{name}: no weights from {source} ({reason})",
            "give a file that fits with --weights",
        ) from None
    module.to(device).eval()
    transform = timm.data.create_transform(**timm.data.resolve_model_data_config(module))

    def view(picture: Image.Image) -> Tensor:
        image: Tensor = transform(to_rgb(picture))
        return image

    return ImageNetwork(
        module, partial(read, use=view, upright=True), nn.Identity(), device, "fp32", name
    )


def _fill(module: nn.Module, weights: dict[str, Tensor]) -> None:
    """Raises `ValueError` or `RuntimeError` unless all of the network is there; a head may be."""
    missing = module.load_state_dict(weights, strict=False).missing_keys
    if missing:
        raise ValueError(f"{len(missing)} are missing, first {missing[0]}")
