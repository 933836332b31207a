"""For tests of methods that draw at random: the order by content, and gradient descent by hand."""

import math

import numpy as np
import torch


def by_content(points):
    """Places of points `(n, D)` by their product with cos(1), cos(2), ...; and the products."""
    keys = [sum(x * math.cos(d + 1) for d, x in enumerate(point)) for point in points.tolist()]
    return [int(place) for place in np.argsort(keys)], keys


def support_by_content(support, way, shot):
    """Rows of the support by content, and the classes in their order."""
    classes = []
    for k in range(way):
        order, keys = by_content(support[k * shot : (k + 1) * shot])
        classes.append((sum(keys) / shot, k, [k * shot + place for place in order]))
    classes.sort()
    return [row for _, _, rows in classes for row in rows], [k for _, k, _ in classes]


class Descent:
    """Stochastic gradient descent as torch documents it, on tensors that need gradients."""

    def __init__(self, parameters, rate, momentum=0.9, dampening=0.0, decay=0.0):
        self.parameters, self.velocities = parameters, [None] * len(parameters)
        self.rate, self.momentum, self.dampening, self.decay = rate, momentum, dampening, decay

    def step(self, loss):
        gradients = torch.autograd.grad(loss, self.parameters)
        for i, (parameter, gradient) in enumerate(zip(self.parameters, gradients, strict=True)):
            change = gradient + self.decay * parameter.detach()
            before = self.velocities[i]
            self.velocities[i] = (
                change if before is None else self.momentum * before + (1 - self.dampening) * change
            )
            parameter.data -= self.rate * self.velocities[i]


def episodes_of(way, shot, queries, size, count=2, unlabeled=0):
    shape = (count, way * shot + queries + unlabeled, size)
    return torch.from_numpy(np.random.default_rng(0).normal(0.5, 1, shape))


def drawn_by_a_head(points, way, shot, number, epochs, bias):
    """An episode's support by content, its classes so ordered, first weights, and batch orders."""
    size = points.shape[-1]
    random = torch.Generator().manual_seed(number)
    weights = 2 * torch.rand((way, size + bias), generator=random).double() - 1
    orders = torch.rand((epochs, way * shot), generator=random).argsort(dim=-1).tolist()
    rows, classes = support_by_content(points[: way * shot], way, shot)
    return points[rows], classes, weights / math.sqrt(size), orders
