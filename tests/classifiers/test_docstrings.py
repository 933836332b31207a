"""What a reader of a classifier's docstring needs: where it is from, and an example that runs."""

import doctest

import pytest

from epcore.classifiers import CLASSIFIERS


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_it_names_its_source_and_its_example_runs(name):
    method = CLASSIFIERS[name]
    assert "https://" in method.__doc__
    (example,) = doctest.DocTestFinder(recurse=False).find(method, name, globs={})
    assert method.__name__ in example.docstring
    found = doctest.DocTestRunner().run(example)
    assert found.attempted > 3
    assert found.failed == 0
