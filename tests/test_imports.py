"""The architecture, kept: imports go downward only, no cycle, heavy packages behind one door each."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

import repro

SOURCE = Path(repro.__file__).parent

# Each room, and the rooms it may import from (itself included).  DESIGN: app > show > laws;
# app > experiments > laws; experiments > work > train > measure > model > data > store > params.
GROUND = {
    "document",
    "errors",
    "files",
    "params",
    "seeds",
    "places",
    "process",
    "progress",
    "hub",
}
STORE = GROUND | {"store", "lease", "provenance"}
DATA = STORE | {"data"}
MODEL = DATA | {"model"}
MEASURE = MODEL | {"measure"}
TRAIN = MEASURE | {"train"}
WORK = TRAIN | {"work"}
LAWS = GROUND | {"laws"}
SHOW = LAWS | {"store", "show"}
EXPERIMENTS = WORK | LAWS | {"experiments"}
ALLOWED = {
    "files": {"files"},
    "errors": {"errors"},
    "document": {"document", "errors"},
    "params": {"document", "errors", "params"},
    "seeds": {"seeds"},
    "places": {"places"},
    "hub": {"errors", "hub", "files"},
    "process": {"process"},
    "progress": {"progress"},
    "lease": {"files", "lease"},
    "provenance": {"provenance"},
    "store": STORE,
    "data": DATA,
    "model": MODEL,
    "measure": MEASURE,
    "train": TRAIN,
    "work": WORK,
    "laws": LAWS,
    "show": SHOW,
    "experiments": EXPERIMENTS,
    "site": SHOW | {"site"},
    "app": EXPERIMENTS | SHOW | {"site", "app"},
}

# Heavy packages and the one module that imports each (a room, where several files of it may).
DOORS = {
    "transformers": {"model.pretrained"},
    "datasets": set(),  # tests only: the referee of `data.sources.card`
    "huggingface_hub": {"hub", "model.files"},
    "ir_datasets": {"data.sources.ir_datasets"},
    "faiss": set(),
    "submitit": {"work.slurm"},
    "papermill": {"app.reproduce"},
    "sphinx": {"site.build"},
    "ir_measures": {"measure.retrieval"},
}


def modules() -> dict[str, ast.Module]:
    found = {}
    for path in sorted(SOURCE.rglob("*.py")):
        name = ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
        found[name] = ast.parse(path.read_text(encoding="utf-8"))
    return found


MODULES = modules()


def imported(tree: ast.Module, *, at_import: bool = False) -> set[str]:
    """Dotted names that a module imports: anywhere, or only when it is itself imported."""
    names: set[str] = set()
    nodes = list(ast.walk(tree))
    if at_import:
        inside = {
            id(n) for f in nodes if isinstance(f, ast.FunctionDef | ast.Lambda) for n in ast.walk(f)
        }
        checking = {
            id(n)
            for test in nodes
            if isinstance(test, ast.If) and "TYPE_CHECKING" in ast.dump(test.test)
            for n in ast.walk(test)
        }
        nodes = [n for n in nodes if id(n) not in inside | checking]
    for node in nodes:
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def ours(name: str) -> str | None:
    """The module of this package that a dotted name lies in, without `repro.`."""
    inside = name.removeprefix("repro.") if name.startswith("repro.") else ""
    while inside and inside not in MODULES:
        inside = inside.rpartition(".")[0]
    return inside or None


@pytest.mark.parametrize("module", [name for name in MODULES if name != "__init__"])
def test_imports_go_downward(module: str) -> None:
    room = module.split(".")[0]
    rooms = {target.split(".")[0] for name in imported(MODULES[module]) if (target := ours(name))}
    assert rooms <= ALLOWED[room], f"{module} imports from {sorted(rooms - ALLOWED[room])}"


def test_there_is_no_cycle() -> None:
    graph = defaultdict(set)
    for module, tree in MODULES.items():
        graph[module] = {
            t for n in imported(tree, at_import=True) if (t := ours(n)) and t != module
        }
    done: set[str] = set()

    def visit(module: str, path: tuple[str, ...]) -> None:
        assert module not in path, " > ".join([*path, module])
        if module not in done:
            for target in graph[module]:
                visit(target, (*path, module))
            done.add(module)

    for module in list(graph):
        visit(module, ())


@pytest.mark.parametrize("package", DOORS)
def test_heavy_packages_have_one_door(package: str) -> None:
    users = {
        module
        for module, tree in MODULES.items()
        if any(name.split(".")[0] == package for name in imported(tree))
    }
    assert users <= DOORS[package], f"{package} is imported in {sorted(users - DOORS[package])}"


@pytest.mark.parametrize("module", MODULES)
def test_there_is_no_star_import_and_no_global_seed(module: str) -> None:
    tree = MODULES[module]
    assert not any(name.endswith(".*") for name in imported(tree))
    text = ast.unparse(tree)
    assert "np.random.seed" not in text
    assert "random.seed(" not in text
    assert "torch.manual_seed" not in text  # it also keeps a stack trace for every call


@pytest.mark.parametrize(
    ("module", "without"),
    [
        ("repro.app.cli", {"torch", "transformers", "pandas", "scipy", "numpy"}),
        ("repro.laws.fit", {"torch", "transformers", "matplotlib"}),
        ("repro.show.claims", {"torch", "transformers"}),
        ("repro.show.style", {"torch", "transformers"}),
        ("repro.store", {"torch", "numpy", "pandas"}),
    ],
)
def test_nothing_heavy_comes_along(module: str, without: set[str]) -> None:
    code = f"import sys, {module}; print(*({sorted(without)!r}[i] for i in range({len(without)}) "
    code += f"if {sorted(without)!r}[i] in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


def test_no_two_test_files_share_a_name() -> None:
    """pytest imports them by name alone: of two alike only one is run, in one process of several."""
    names = [path.name for path in Path(__file__).parent.rglob("test_*.py")]
    assert sorted(names) == sorted(set(names))
