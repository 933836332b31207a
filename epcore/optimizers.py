"""torch's optimizers without torch's compiler, which takes a second to import in each process.

torch marks methods of its optimizers as not to be compiled, and imports the compiler for that when
they are first called. Nothing is compiled here: these call what lies beneath the marks, so steps
are the same to the last bit.
"""

from inspect import unwrap

import torch
from torch.optim import Optimizer


class _Unmarked(Optimizer):
    add_param_group = unwrap(Optimizer.add_param_group)
    load_state_dict = unwrap(Optimizer.load_state_dict)
    state_dict = unwrap(Optimizer.state_dict)
    zero_grad = unwrap(Optimizer.zero_grad)


class SGD(_Unmarked, torch.optim.SGD):
    """Stochastic gradient descent, as `torch.optim.SGD`."""

    step = torch.no_grad()(unwrap(torch.optim.SGD.step))


class Adam(_Unmarked, torch.optim.Adam):
    """Adam, as `torch.optim.Adam`."""

    step = torch.no_grad()(unwrap(torch.optim.Adam.step))
