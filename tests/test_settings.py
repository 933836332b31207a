"""A mistake in settings is one line: the place, what is wrong and what was meant."""

from fractions import Fraction
from typing import Annotated, Literal

import pytest
from pydantic import Field, PositiveInt

from epcore.errors import UserError
from epcore.settings import Ratio, Settings, pick, suggest, validate


class Circle(Settings):
    kind: Literal["circle"]
    radius: float


class Square(Settings):
    kind: Literal["square"]
    side: float
    rounded: bool = False


class Drawing(Settings):
    title: str
    shapes: Annotated[tuple[Annotated[Circle | Square, Field(discriminator="kind")], ...],
                      Field(min_length=1)]  # fmt: skip
    copies: PositiveInt | dict[str, PositiveInt] = 1
    width: Ratio = Fraction(1)


DRAWING = {"title": "Two", "shapes": [{"kind": "circle", "radius": 1}]}


def complaint(kind=Drawing, advice="", **changes):
    with pytest.raises(UserError) as caught:
        validate(kind, DRAWING | changes, "file.yaml", advice)
    message = str(caught.value)
    assert len(message.splitlines()) == 1
    assert message.startswith("file.yaml: ")
    return message.removeprefix("file.yaml: ")


def test_settings_that_are_right_are_read_as_their_type():
    drawing = validate(Drawing, DRAWING | {"width": "1/4", "copies": {"a": 2}}, "file.yaml")
    assert drawing.shapes == (Circle(kind="circle", radius=1),)
    assert (drawing.width, drawing.copies) == (Fraction(1, 4), {"a": 2})


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"titel": "x"}, "unknown key 'titel'; did you mean 'title'?"),
        (
            {"shapes": [{"kind": "square", "side": 1, "ronded": True}]},
            "unknown key 'shapes.0.ronded'; did you mean 'rounded'?",
        ),
        ({"shapes": [{"kind": "sqare"}]}, "shapes.0: unknown kind 'sqare'; did you mean 'square'?"),
        ({"shapes": []}, "shapes: expected a list that is not empty, got []"),
        ({"shapes": "circle"}, 'shapes: expected a list, got "circle"'),
        ({"shapes": [3]}, "shapes.0: "),
        ({"title": None}, "title: Input should be a valid string, got null"),
        ({"width": "wide"}, 'width: expected a ratio such as 1/4 or 0.25, got "wide"'),
        ({"width": "1/0"}, 'width: expected a ratio such as 1/4 or 0.25, got "1/0"'),
        ({"width": 0}, "width: "),
        ({"shapes": [{"kind": "circle", "radius": float("nan")}]}, "shapes.0.radius: "),
    ],
)
def test_a_mistake_is_told_with_its_place_and_what_is_expected(changes, said):
    assert complaint(**changes).startswith(said)


def test_a_mistake_inside_one_reading_of_a_union_is_told_at_its_depth():
    assert complaint(copies={"a": 0}).startswith("copies.a: Input should be greater than 0")


def test_a_missing_key_is_told_with_the_advice_that_was_given():
    circle = {"shapes": [{"kind": "circle"}]}
    assert complaint(**circle) == "the key 'shapes.0.radius' is missing"
    said = complaint(advice="; add it", **circle)
    assert said == "the key 'shapes.0.radius' is missing; add it"


def test_a_misspelled_key_is_told_before_the_one_that_is_missing_for_it():
    said = complaint(shapes=[{"kind": "circle", "radus": 1}])
    assert said == "unknown key 'shapes.0.radus'; did you mean 'radius'?"


def test_a_long_value_is_shown_by_its_beginning():
    assert complaint(width="w" * 1000).endswith("www...")


def test_a_content_of_another_kind_is_no_mapping():
    with pytest.raises(UserError, match=r"^x: expected a mapping of keys to values, got 3$"):
        validate(Drawing, 3, "x")


def test_an_unknown_name_is_told_with_the_nearest_or_all():
    names = {"conv4": 1, "resnet12": 2}
    assert pick(names, "conv4", "backbone", "x") == 1
    with pytest.raises(UserError, match=r"^x: unknown backbone 'conv5'; did you mean 'conv4'\?$"):
        pick(names, "conv5", "backbone", "x")
    assert suggest("wrn", names) == "; known: conv4, resnet12"
    assert suggest("wrn", []) == "; there are none"
