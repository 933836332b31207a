"""The feature extractors of the paper."""
