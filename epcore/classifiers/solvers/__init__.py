"""What several classifiers share."""
