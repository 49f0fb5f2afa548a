"""Classes that a private module defines for a public one have its name, and `source_of` finds their text."""

import io
import subprocess
import sys
import types
import warnings

import pytest

import torchlite as torch
from torchlite._settings.adopted_classes import adopt_classes, definition_of
from torchlite._types.python_source import source_of


def test_only_classes_of_private_modules_of_the_package_are_adopted():
    homes = {"Private": "package._part", "Public": "package.part", "Own": "package.whole", "Strange": "other._part"}
    classes = {name: type(name, (), {"__module__": home}) for name, home in homes.items()}
    module = types.ModuleType("package.whole")
    vars(module).update(classes, number=1)
    adopt_classes(vars(module))
    assert {name: cls.__module__ for name, cls in classes.items()} == {**homes, "Private": "package.whole"}
    assert definition_of(classes["Private"]).__module__ == "package._part"
    assert definition_of(classes["Own"]) is classes["Own"]


@pytest.mark.parametrize("module", [torch.nn.MultiheadAttention(4, 2), torch.nn.HingeEmbeddingLoss()])
def test_an_old_checkpoint_of_an_adopted_class_has_its_source(module):
    cls, file = type(module), io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        torch.save(module, file, _use_new_zipfile_serialization=False)
        assert type(torch.load(io.BytesIO(file.getvalue()), weights_only=False)) is cls
    assert source_of(cls).startswith(f"class {cls.__name__}(") and source_of(cls).encode() in file.getvalue()


def test_the_source_is_found_under_the_name_torch():
    code = (
        "import torchlite\n"
        "torchlite.nn.HingeEmbeddingLoss\n"
        "torch = torchlite.as_torch()\n"
        "from torch._types.python_source import source_of\n"
        "for cls in torch.nn.HingeEmbeddingLoss, torch.optim.lr_scheduler.CyclicLR:\n"
        "    print(cls.__module__, source_of(cls)[:10])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "torch.nn.modules.loss class Hing\ntorch.optim.lr_scheduler class Cycl\n"
