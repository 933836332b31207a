"""Processes that train one network on CPUs: torch's own BatchNorm over processes refuses them."""

import torch
from torch import distributed, nn
from torch.nn.modules.batchnorm import _BatchNorm

from epcore.training import pretrain

train_on_gpus = pretrain.train


def train_on_cpus(team, *arguments):
    """What `pretrain.train` does, with BatchNorm of our own across the processes."""
    norms_for_cpus()
    train_on_gpus(team, *arguments)


def norms_for_cpus():
    """In this process."""
    nn.SyncBatchNorm.convert_sync_batchnorm = _replaced


class _MeanOfAll(torch.autograd.Function):
    """Mean of a tensor over processes; the gradient is that of one loss that all compute."""

    @staticmethod
    def forward(ctx, value):
        mean = value.clone()
        distributed.all_reduce(mean)
        return mean / distributed.get_world_size()

    @staticmethod
    def backward(ctx, gradient):
        mean = gradient.clone()
        distributed.all_reduce(mean)
        return mean / distributed.get_world_size()


def _mean_of_all(value):
    return _MeanOfAll.apply(value)


class _NormOfAll(_BatchNorm):
    """BatchNorm with statistics of all processes' batches, which are of equal size."""

    def _check_input_dim(self, values):
        """Any number of positions, none included."""

    def forward(self, values):
        if not self.training:
            return super().forward(values)
        positions = [0, *range(2, values.dim())]
        full = values.float()
        mean = _mean_of_all(full.mean(positions, keepdim=True))
        centered = full - mean
        variance = _mean_of_all(centered.square().mean(positions, keepdim=True))
        count = values.numel() // values.shape[1] * distributed.get_world_size()
        with torch.no_grad():
            self.num_batches_tracked.add_(1)
            self.running_mean.lerp_(mean.flatten(), self.momentum)
            self.running_var.lerp_(variance.flatten() * count / (count - 1), self.momentum)
        scaled = centered * (variance + self.eps).rsqrt() * self.weight.view(mean.shape)
        return (scaled + self.bias.view(mean.shape)).to(values.dtype)


def _replaced(module):
    for name, child in module.named_children():
        if isinstance(child, _BatchNorm):
            norm = _NormOfAll(child.num_features, child.eps, child.momentum)
            norm.load_state_dict(child.state_dict())
            setattr(module, name, norm)
        else:
            _replaced(child)
    return module
