"""Episodes of a wrong size are told before a classifier sees them."""

import pytest
import torch

from epcore.classifiers import EpisodeBatch


def test_an_episode_with_fewer_images_than_its_support_and_queries_is_told():
    EpisodeBatch(torch.rand(3, 80, 4), way=5, shot=1, queries=75)
    assert EpisodeBatch(torch.rand(3, 90, 4), way=5, shot=1, queries=75).unlabeled.shape[-2] == 10
    with pytest.raises(ValueError, match=r"has 79 images .* 75 queries, of all .* are 80"):
        EpisodeBatch(torch.rand(3, 79, 4), way=5, shot=1, queries=75)
