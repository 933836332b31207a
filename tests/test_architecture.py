"""Arrows between the packages of epcore run downward, and no modules import each other."""

import ast
import re
from graphlib import TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).parents[1]
# From the top to the bottom; packages in one line may import each other.
FLOORS = (
    ("__main__", "commands"),
    ("plan",),
    ("config",),
    ("analysis",),
    ("report", "footprint"),
    ("imagenet_fs",),
    ("training",),
    ("evaluation",),
    ("data", "methods"),
    ("classifiers", "generators"),
    ("backbones",),
    ("propagation", "runtime"),
    ("settings",),
    ("files",),
    ("errors", "vision"),
)
FLOOR = {package: number for number, floor in enumerate(FLOORS) for package in floor}
MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for path in (ROOT / "epcore").rglob("*.py")
}


def imported_by(path, *, at_start):
    """The modules of epcore that a file imports; at_start: without those inside of functions."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found = set()
    for node in tree.body if at_start else ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            parts = {f"{node.module}.{name.name}" for name in node.names}
            found |= {part if part in MODULES else node.module for part in parts}
        elif isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
    return found & MODULES.keys()


def package_of(module):
    return module.split(".")[1] if "." in module else ""


def test_no_arrow_runs_upward():
    arrows = {
        (module, other)
        for module, path in MODULES.items()
        for other in imported_by(path, at_start=False)
        if package_of(module) and package_of(other)
    }
    upward = [(a, b) for a, b in arrows if FLOOR[package_of(b)] < FLOOR[package_of(a)]]
    assert upward == []


def test_no_modules_import_each_other():
    graph = {module: imported_by(path, at_start=True) for module, path in MODULES.items()}
    for module in graph:
        graph[module].discard(module)
    assert [*TopologicalSorter(graph).static_order()]  # raises CycleError


def test_every_package_has_its_floor_and_no_module_is_loose():
    packages = {package_of(module) for module in MODULES} - {""}
    assert packages == FLOOR.keys()


def test_the_page_lists_the_packages_in_this_order():
    page = (ROOT / "docs/extending.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| `epcore/(\w+)[/.]", page, re.M)
    assert [FLOOR[name] for name in listed] == sorted(FLOOR[name] for name in listed)
    assert set(listed) >= FLOOR.keys() - {"__main__", "files", "errors", "vision"}
