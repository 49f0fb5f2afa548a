"""The folders of tests mirror those of the source."""

from __future__ import annotations

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[1]
TESTS = ROOT / "tests"
SOURCES = {"": ROOT / "torchlite", "backends": ROOT / "backends" / "torchlite_backends"}

# Folders whose tests concern several rooms, or the repository itself.
CROSS_CUTTING = {
    "array_api": "the Array API standard's suite",
    "behaviours": "one-line programs with PyTorch's recorded answers",
    "benchmarks": "the programs of benchmarks/",
    "cuda_simulator": "CUDA's kernels on the processor",
    "error_inputs": "PyTorch's tables of error inputs",
    "graph_models": "networks for exporters and importers",
    "hostile": "damaged and hostile files and peers",
    "hosts": "ranks on several machines, made of network namespaces",
    "mutants": "the source with one fault, which tests must notice",
    "nvrtc": "CUDA programs through NVIDIA's compiler",
    "oracle": "comparisons with an installed PyTorch",
    "programs": "whole training programs",
    "public_names": "names that programs and packages import",
    "suites": "other projects' own tests",
    "threads": "threads, forks and signals",
    "type_checking": "programs for mypy and pyright",
}
# Files directly in tests/ that are not named for a module of torchlite/.
ABOUT_THE_REPOSITORY = {
    "arguments", "broad_excepts", "case_names", "docs", "docs_call_paths", "docs_names", "docs_site", "docs_words",
    "docstrings", "gallery", "imports", "mirror", "packaging", "recorded_files", "toy_backend", "unused_parameters",
}  # fmt: skip
# Files named for a subject of their room that no module of it is named for.
SUBJECTS = {
    "C": "reexports",
    "ao/ns": "recorded_answers",
    "ao/pruning": "recorded_answers",
    "ao/quantization": "recorded_answers",
    "aten": "quantized_subclasses",
    "autograd": "compositions errors_and_warnings in_place reference_cycles views",
    "backends/numpy": "fork",
    "backends/opencl": "processes",
    "cuda": "backend_flags devices interop on_simulator unavailable",
    "dispatch": "large_array_kernels python_scalars signatures beginners_mistakes subclass_attributes",
    "distributed": "by_hand faults hosts_page missing_ranks ray_train signals trainers",
    "distributed/fsdp": "gradient_reduction",
    "distributions": "recorded_answers small_concentrations",
    "dynamo": "adversarial_aliases adversarial_gradients adversarial_objects adversarial_programs "
    "host_constants layers_and_optimizers random_networks random_programs training_losses training_programs",
    "export": "data_dependent_branches pytorch_files unbacked_symbols",
    "func": "compositions transforms",
    "interop": "pandas_and_pillow scientific_python",
    "jit": "loaded_indexing object_lifetimes operator_versions",
    "multiprocessing": "killed_processes",
    "nn": "argument_checks docstrings interpolate_uint8 layers reserved_attributes",
    "ops": "changed_arguments edge_values error_messages half_precision large_numbers limits "
    "nodes saved_tensors second_derivatives sums",
    "optim": "capturable formulas grad_scaling half_precision optimizers subclasses",
    "quantized": "recorded_answers",
    "serve": "deployment_files load_balancer trials",
    "sparse": "recorded_answers",
    "stubs": "type_checked_programs",
    "tensor": "complex32",
    "nested": "jagged",
}  # fmt: skip


def folders() -> list[str]:
    """The folders of tests that have Python files, relative to tests/."""
    found = {path.parent.relative_to(TESTS).as_posix() for path in TESTS.rglob("*.py")}
    return sorted(found - {"."})


def source_of(folder: str) -> list[pathlib.Path]:
    """The source folders, or root modules, that a folder of tests mirrors: their names may begin with an underscore."""
    first, _, rest = folder.partition("/")
    root = SOURCES["backends"] if first == "backends" and rest else SOURCES[""]
    parts = rest.split("/") if first == "backends" and rest else folder.split("/")
    places = [root]
    for part in parts:
        places = [place / name for place in places for name in (part, f"_{part}")]
    found = [path for place in places for path in (place, place.with_suffix(".py")) if path.exists()]
    return [path for path in found if path.is_file() or path.is_dir()]


def module_words(folder: str) -> set[str]:
    """The names of a package's modules and folders, and the parts of these names."""
    found: set[str] = set()
    for source in source_of(folder):
        paths = [source, *source.rglob("*.py")] if source.is_dir() else [source]
        for path in paths:
            names = [source.stem, *path.with_suffix("").relative_to(source.with_suffix("")).parts]
            found |= {word.lower() for name in names for word in [name.strip("_"), *name.split("_")] if word}
    return found


def is_cross_cutting(folder: str) -> bool:
    return folder.split("/")[0] in CROSS_CUTTING


@pytest.mark.parametrize("folder", folders())
def test_a_folder_is_a_room_or_cross_cutting(folder):
    parent = folder.rpartition("/")[0]
    helpers = not list((TESTS / folder).glob("test_*.py"))  # data and helper modules of the room above
    assert is_cross_cutting(folder) or source_of(folder) or parent and (helpers or folder in SUBJECTS), (
        f"tests/{folder} mirrors no folder of torchlite/ or torchlite_backends/, nor is it in CROSS_CUTTING"
    )


@pytest.mark.parametrize("folder", [folder for folder in folders() if not is_cross_cutting(folder)])
def test_files_are_named_for_modules_or_subjects_of_their_room(folder):
    known, subjects = module_words(folder), set(SUBJECTS.get(folder, "").split())
    unknown = set()
    for path in (TESTS / folder).glob("test_*.py"):
        name = path.stem.removeprefix("test_")
        words = {name, *name.split("_"), *re.findall(r"(?=([a-z0-9]+_[a-z0-9]+))", name)}
        if not (words | {f"{word}s" for word in words}) & known:
            unknown.add(name)
    assert unknown <= subjects, f"tests/{folder}: {sorted(unknown - subjects)} name no module or subject of the room"
    assert subjects <= unknown, f"tests/{folder}: {sorted(subjects - unknown)} are in SUBJECTS without need"


def test_files_of_the_top_folder_are_named_for_root_modules():
    modules = {path.stem.strip("_") for path in SOURCES[""].glob("*.py")}
    names = {path.stem.removeprefix("test_") for path in TESTS.glob("test_*.py")}
    assert names <= modules | ABOUT_THE_REPOSITORY


def test_each_room_with_code_has_tests():
    """Rooms that have no folder are thin: they re-export what other rooms define and test."""
    thin = {
        "_custom_op", "_decomp", "_logging", "compiler", "cpu", "futures", "quantization",
        "signal",
    }  # fmt: skip
    rooms = {path.name for path in SOURCES[""].iterdir() if (path / "__init__.py").exists()}
    tested = set(folders())
    assert {room for room in rooms if room.strip("_") not in tested} == thin & rooms
    packages = {path.name for path in SOURCES["backends"].iterdir() if (path / "__init__.py").exists()}
    shared = {"kernel_sources": "cuda_simulator"}  # tested through what uses them
    assert packages - {folder.removeprefix("backends/") for folder in tested} == set(shared)
    assert set(shared.values()) <= tested
