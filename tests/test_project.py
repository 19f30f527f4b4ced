"""The files around the course agree with each other and with what they promise."""

import ast
import re
import sys
import tomllib
from pathlib import Path

import nbformat
import yaml

ROOT = Path(__file__).parent.parent
REQUIREMENTS = (ROOT / "requirements.txt").read_text()
MAKEFILE = (ROOT / "Makefile").read_text()


def test_every_requirement_is_pinned():
    lines = [line for line in REQUIREMENTS.splitlines() if line and not line.startswith("#")]
    assert lines[-1] == "-e ."
    for line in lines[:-1]:
        assert re.fullmatch(r"[\w.-]+==[\w.]+", line), line


def test_environment_repeats_nothing():
    """Whatever conda and Binder install stands in requirements.txt, so the two cannot drift."""
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())
    python, pip, from_pip = environment["dependencies"]
    assert python.startswith("python=3.")
    assert pip == "pip"
    assert from_pip == {"pip": ["-r requirements.txt"]}


def test_every_import_is_required():
    pinned = {
        name.lower().replace("-", "_") for name in re.findall(r"^([\w-]+)==", REQUIREMENTS, re.M)
    }
    # modules of PyYAML, pyzmq and scikit-learn; pillow comes with matplotlib
    pinned |= {"yaml", "zmq", "sklearn", "pil"}
    tests = list((ROOT / "tests").rglob("*.py"))
    pinned |= {"course_utils"} | {path.stem for path in tests} | {p.parent.name for p in tests}
    for name in imported():
        assert name in sys.stdlib_module_names or name.lower() in pinned, name


def test_the_package_needs_what_it_imports():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    imports = {
        module
        for path in (ROOT / "course_utils").rglob("*.py")
        for module in modules(path.read_text())
    }
    declared = {
        name.replace("scikit-learn", "sklearn").replace("-", "_")
        for name in project["dependencies"]
    }
    assert declared == {n.lower() for n in imports if n not in sys.stdlib_module_names} - {
        "course_utils",
        "numpy",  # these two come with matplotlib
        "pil",
    }


def test_every_make_target_explains_itself():
    phony = re.search(r"^\.PHONY: (.+)$", MAKEFILE, re.M)[1].split()
    readme = (ROOT / "README.md").read_text()
    for target in phony:
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


def imported() -> set[str]:
    found = set()
    for folder in ("course_utils", "tests"):
        for path in (ROOT / folder).rglob("*.py"):
            found |= modules(path.read_text())
    for path in (ROOT / "notebooks").glob("*.ipynb"):
        for cell in nbformat.read(path, as_version=4).cells:
            if cell.cell_type == "code":
                found |= modules(cell.source)
    return found
