"""The files around the course agree with each other and with what they promise."""

import ast
import importlib
import re
import sys
import tomllib
from pathlib import Path

import nbformat
import pytest
import yaml

ROOT = Path(__file__).parent.parent
REQUIREMENTS = (ROOT / "requirements.txt").read_text()
CONSTRAINTS = (ROOT / "constraints.txt").read_text()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = tuple(PROJECT["optional-dependencies"])
PINNED = {name.lower().replace("_", "-") for name in re.findall(r"^([\w.-]+)==", CONSTRAINTS, re.M)}
MAKEFILE = (ROOT / "Makefile").read_text()


def package(module: str) -> str:
    """The package that a module comes with."""
    others = {"yaml": "pyyaml", "zmq": "pyzmq", "sklearn": "scikit-learn", "pil": "pillow"}
    name = module.lower()
    return others.get(name, name.replace("_", "-"))


def declared(*where: str) -> set[str]:
    """The packages that pyproject.toml names as dependencies, or in these extras."""
    lists = {"dependencies": PROJECT["dependencies"], **PROJECT["optional-dependencies"]}
    return {name for extra in where for name in lists[extra]}


def test_every_package_is_pinned_for_every_machine():
    """The course's own and what they bring along; `+cpu`, say, is a build of one machine alone."""
    for line in CONSTRAINTS.splitlines():
        assert line.startswith("#") or re.fullmatch(r"[\w.-]+==[\w.]+", line), line
    assert declared("dependencies", *EXTRAS) <= PINNED


def test_what_is_installed_is_what_is_pinned(monkeypatch):
    """Of the packages that the course brings along, those that the tests need."""
    monkeypatch.syspath_prepend(ROOT / "tools")
    tree = importlib.import_module("constraints").tree({"lab", "test"})
    assert {"torch", "jupyterlab", "pytest", "parso"} <= set(tree)  # parso: of jedi, of IPython
    for name, version in tree.items():
        assert f"{name}=={version}\n" in CONSTRAINTS


def test_requirements_install_what_make_lab_and_make_test_do():
    lines = [line for line in REQUIREMENTS.splitlines() if line and not line.startswith("#")]
    assert lines == ["-c constraints.txt", "-e .[lab,test]", "pytest", "nbval"]


def test_environment_repeats_nothing():
    """Whatever conda and Binder install stands in requirements.txt, so the two cannot drift."""
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())
    python, pip, from_pip = environment["dependencies"]
    assert python.startswith("python=3.")
    assert pip == "pip"
    assert from_pip == {"pip": ["-r requirements.txt"]}


@pytest.mark.parametrize(
    ("folder", "extras"),
    [
        ("notebooks", ["lab"]),
        ("tools", ["lab", "test"]),
        ("tests", ["lab", "test"]),
        ("tests/solutions", ["test"]),
        ("tests/browser", ["lab", "test", "browser"]),
        ("tests/bench", ["lab", "test", "browser"]),
        ("docs", ["site"]),
    ],
)
def test_every_import_is_declared(folder, extras):
    """In the extras that the target which runs it installs."""
    own = {"course_utils"} | {
        name
        for part in ("docs", "tests", "tools")
        for path in (ROOT / part).rglob("*.py")
        for name in (path.stem, path.parent.name)
    }
    others = imported(ROOT / folder) - sys.stdlib_module_names - own
    assert {package(name) for name in others} <= declared("dependencies", *extras)


def test_every_extra_has_a_target():
    extras = re.search(r"^EXTRAS := (.+)$", MAKEFILE, re.M)[1].split()
    assert ("lab", *extras) == EXTRAS


def test_the_package_needs_what_it_imports():
    """Only what belongs to JupyterLab may need what the lessons run in."""
    inside, lab = set(), set()
    for path in (ROOT / "course_utils").rglob("*.py"):
        (lab if path.parent.name == "jupyter" else inside).update(modules(path.read_text()))
    inside, lab = (
        {package(name) for name in names - {*sys.stdlib_module_names, "course_utils"}}
        for names in (inside, lab)
    )
    assert inside <= declared("dependencies") <= inside | lab
    assert lab <= declared("dependencies", "lab")


def test_every_make_target_explains_itself():
    phony = re.search(r"^\.PHONY: ((?:.*\\\n)*.*)$", MAKEFILE, re.M)[1].replace("\\\n", " ").split()
    readme = (ROOT / "README.md").read_text()
    for target in phony:
        if target.startswith("$("):  # install-test and the like
            continue
        assert re.search(rf"^{target}:", MAKEFILE, re.M), target
        if target not in ("help", "install"):
            assert f"make {target} " in MAKEFILE, f"{target} is missing in make help"
            assert f"make {target}" in readme, f"{target} is missing in the README"


def test_ci_runs_the_same_targets():
    script = (ROOT / ".ci" / "run").read_text()
    for target in ("lint", "test", "test-browser"):
        assert re.search(rf"^make {target}$", script, re.M)
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())
    steps = [step.get("run") for job in workflow["jobs"].values() for step in job["steps"]]
    assert {"make lint", "make test", ".ci/run"} <= set(steps)


def test_the_readme_lists_every_lesson():
    readme = (ROOT / "README.md").read_text()
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        title = nbformat.read(path, as_version=4).cells[0].source
        name = re.match(r"# \d+ · (.+)", title)[1]
        minutes = re.search(r"about (\d+)\s+minutes", title)[1]
        assert re.search(
            rf"\[{re.escape(name)}\]\(notebooks/{path.name}\).*\| {minutes} \|", readme
        ), name


def test_the_teachers_page_has_the_minutes_of_every_lesson():
    page = (ROOT / "TEACHING.md").read_text()
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        title = nbformat.read(path, as_version=4).cells[0].source
        number, name = re.match(r"# (\d+) · (.+)", title).groups()
        minutes = re.search(r"about (\d+)\s+minutes,\s+and\s+(\d+)\s+more", title).groups()
        reading, exercises = map(int, minutes)
        assert f"| {number} | {name} | {reading} | {reading + exercises} |" in page, name


def modules(source: str) -> set[str]:
    """Top-level names of all absolute imports in a piece of code."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found.add(node.module.split(".")[0])
    return found


def imported(folder: Path) -> set[str]:
    """Top-level names of all imports in the files that lie in a folder itself."""
    found = set()
    for path in folder.glob("*.py"):
        found |= modules(path.read_text())
    for path in folder.glob("*.ipynb"):
        for cell in nbformat.read(path, as_version=4).cells:
            if cell.cell_type == "code":
                found |= modules(cell.source)
    return found
