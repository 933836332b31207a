"""A mistake in the file of one's own classifier is told in one line."""

import sys

import pytest

import epcore.classifiers
from epcore.classifiers import kind_of
from epcore.errors import UserError

CLASS = """from epcore.classifiers import EpisodeClassifier


class Mine(EpisodeClassifier):
"""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "import torch\nimport trch\n",
            ", line 2: .* (ModuleNotFoundError: No module named 'trch')",
        ),
        ("import torch\n\n  x = 1\n", ", line 3: .* (IndentationError: unexpected indent)"),
        ("import torch\ntorch.zeros(-1)\n", ", line 2: .* (RuntimeError: "),
        (f"{CLASS}    steps: int = Field(3)\n", ", line 5: .* (NameError: name 'Field' is not "),
        (f"{CLASS}    steps: int = 3\n", ": the class Mine has no logits(); write it"),
        ("x = 1\n", " has 0 classes that extend EpisodeClassifier; give it one"),
    ],
)
def test_it_names_the_file_and_the_line(tmp_path, monkeypatch, text, said):
    file = tmp_path / "my_method.py"
    file.write_text(text, encoding="utf-8")
    monkeypatch.setattr(
        epcore.classifiers, "__path__", [*epcore.classifiers.__path__, str(tmp_path)]
    )
    monkeypatch.delitem(sys.modules, "epcore.classifiers.my_method", raising=False)
    with pytest.raises(UserError) as caught:
        kind_of("my-method")
    sys.modules.pop("epcore.classifiers.my_method", None)
    message = str(caught.value)
    assert message.startswith(str(file))
    assert "\n" not in message
    for part in said.split(".*"):
        assert part in message
