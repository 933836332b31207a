"""Where the processor time of a pretraining step goes, by kind of operation."""

from collections import Counter

import torch
from pretraining import BATCHES, Timed, timed
from torch.profiler import ProfilerActivity, profile

from epcore.runtime.device import choose_device
from epcore.training.schedule import optimizer_of

# Kind -> beginnings of the names of operations; what has none of them is the rest.
KINDS = {
    "convolutions, backward": ("aten::convolution_backward",),
    "convolutions": ("aten::mkldnn_convolution", "aten::cudnn_convolution"),
    "batch norm, backward": ("aten::native_batch_norm_backward", "aten::cudnn_batch_norm_backward"),
    "batch norm": ("aten::native_batch_norm", "aten::cudnn_batch_norm"),
    "max pool, backward": ("aten::max_pool2d_with_indices_backward",),
    "max pool": ("aten::max_pool2d_with_indices",),
    "ReLU and its backward": ("aten::clamp_min", "aten::threshold_backward", "aten::relu"),
    "matrix products and Cholesky": ("aten::mm", "aten::addmm", "aten::linalg", "aten::_cholesky"),
    "optimizer": ("Optimizer.", "aten::_fused_sgd"),
}


def kind_of(operation: str) -> str:
    for kind, names in KINDS.items():
        if operation.startswith(names):
            return kind
    return "the rest: graph, feed, heads"


def shares(task: Timed) -> Counter[str]:
    """What each kind of work takes of the processor time of some steps, in percent."""
    optimizer = optimizer_of(task.model, task.settings)
    generator = torch.Generator()

    def steps() -> None:
        for loss in super(Timed, task).losses(0, 0, generator):
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()

    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        steps()
    spent: Counter[str] = Counter()
    for event in profiler.key_averages():
        spent[kind_of(event.key)] += event.self_cpu_time_total
    total = sum(spent.values())
    return Counter({kind: 100 * value / total for kind, value in spent.items()})


def main() -> None:
    device = choose_device()
    found = {pixels: shares(timed(device, pixels, "conv4", BATCHES[pixels])) for pixels in BATCHES}
    for kind in sorted({*found[28]}, key=lambda kind: -found[28][kind]):
        cells = " | ".join(f"{found[pixels][kind]:.1f}" for pixels in BATCHES)
        print(f"| {kind} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
