"""The unlabeled images that self-training keeps of each class."""

from torch import Tensor


def surest_of_each_class(
    sureness: Tensor, guesses: Tensor, way: int, per_class: int
) -> tuple[Tensor, Tensor]:
    """Places `(..., m)` of the `per_class` surest images of each guessed class, and their amounts.

    sureness, guesses: of each image, `(..., n)`. m is as large as it may get, `way * per_class` or
    n; an amount is 1 for an image that is kept and 0 for one in excess, where a class has fewer.
    """
    rivals = guesses[..., :, None] == guesses[..., None, :]
    surer = rivals & (sureness[..., None, :] > sureness[..., :, None])
    selectable = (surer.sum(dim=-1) < per_class).to(sureness.dtype)
    most = min(sureness.shape[-1], way * per_class)
    chosen = selectable.argsort(dim=-1, descending=True, stable=True)[..., :most]
    return chosen, selectable.gather(-1, chosen)
