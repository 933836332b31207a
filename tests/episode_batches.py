"""Episodes for tests whose images behind the queries have no label."""

from epcore.classifiers.episodes import EpisodeBatch


def batch_of(points, way, shot, queries, *base, **named):
    """Episodes of points `(..., N, D)`: what stands behind support and queries is unlabeled."""
    unlabeled = points.shape[-2] - way * shot - queries
    return EpisodeBatch(points, way, shot, queries, *base, **named, unlabeled=unlabeled)
