"""From per-episode scores to tables."""
