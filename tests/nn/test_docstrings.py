"""The docstrings of the layers: each has the sections that its reader needs.

`tests/test_docs.py` runs the examples.
"""

import inspect
import re
import warnings

import pytest

import torchlite
from torchlite._dispatch.op_docstrings import sections
from torchlite.nn import modules

LAYERS = sorted(modules.__all__)
# Common arguments of PyTorch's factories, and private ones.
_NOT_DOCUMENTED = {"self", "device", "dtype"}
METHODS = sorted(
    name
    for name, value in vars(torchlite.nn.Module).items()
    if inspect.isfunction(value) and not name.startswith("_") and name != "forward"
)
# Values of the arguments that layers require.
_ARGUMENTS = {
    "bias": True, "cutoffs": [2], "dim": 1, "downscale_factor": 2, "embedding_dim": 4, "embed_dim": 4, "groups": 2,
    "hidden_size": 4, "in1_features": 4, "in2_features": 4, "in_channels": 4, "in_features": 4, "input_size": 4,
    "kernel_size": 2, "mode": "LSTM", "n_classes": 5, "nhead": 2, "d_model": 4, "norm_type": 2, "normalized_shape": 4,
    "num_channels": 4, "num_chunks": 3, "num_classes": 5, "num_embeddings": 4, "num_features": 4, "num_groups": 2,
    "num_heads": 2, "num_layers": 1, "out_channels": 4, "out_features": 4, "output_size": 2, "padding": 1, "size": 3,
    "threshold": 1.0, "unflattened_size": (2, 2), "upscale_factor": 2, "value": 0.0,
}  # fmt: skip
# Options without which a parameter does not exist.
_OPTIONS = {
    "FractionalMaxPool2d": {"output_size": 2}, "FractionalMaxPool3d": {"output_size": 2},
    "InstanceNorm1d": {"affine": True}, "InstanceNorm2d": {"affine": True}, "InstanceNorm3d": {"affine": True},
    "LSTM": {"proj_size": 2}, "MultiheadAttention": {"add_bias_kv": True}, "RNNBase": {"proj_size": 2},
}  # fmt: skip
_ITEM = re.compile(r"^    \*{0,2}(\w+)(?: \([^)]*\))?: \S", re.MULTILINE)


def constructor_parameters(kind: type) -> list[str]:
    if kind.__init__ is torchlite.nn.Module.__init__ and kind is not torchlite.nn.Module:
        return []  # it accepts none
    return [
        name
        for name in inspect.signature(kind.__init__).parameters
        if name not in _NOT_DOCUMENTED and not name.startswith("_")
    ]


def build(kind: type) -> torchlite.nn.Module:
    required = [
        name
        for name, parameter in inspect.signature(kind.__init__).parameters.items()
        if parameter.default is parameter.empty and parameter.kind is parameter.POSITIONAL_OR_KEYWORD and name != "self"
    ]
    known = dict(_ARGUMENTS)
    known["encoder_layer"] = known["decoder_layer"] = torchlite.nn.Identity()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of deprecated classes
        return kind(**{name: known[name] for name in required}, **_OPTIONS.get(kind.__name__, {}))


def missing_parts(kind: type) -> list[str]:
    """The sections that a layer's own docstring lacks; an inherited one does not count."""
    if not kind.__dict__.get("__doc__"):
        return ["a docstring"]
    docstring = inspect.cleandoc(kind.__doc__)
    found = sections(docstring)
    first = docstring.split("\n", 1)[0]
    wrong = [] if first.endswith(".") else ["a first line of one sentence"]
    documented = set(_ITEM.findall(found.get("Args", "")))
    wrong += [f"Args: {name}" for name in constructor_parameters(kind) if name not in documented]
    if not {"Shape", "Returns"} & set(found):
        wrong.append("Shape or Returns")
    if ">>> " not in found.get("Example", ""):
        wrong.append("Example")
    return wrong


def documents_unknown_parameters(kind: type) -> list[str]:
    found = sections(inspect.cleandoc(kind.__doc__))
    return sorted(set(_ITEM.findall(found.get("Args", ""))) - set(inspect.signature(kind.__init__).parameters))


def undocumented_attributes(kind: type) -> list[str]:
    """The layer's own parameters that its Attributes section lacks; of recurrent layers without the layer's number."""
    owned = [re.sub(r"_l\d+$", "_l{k}", key) for key, _ in build(kind).named_parameters(recurse=False)]
    attributes = sections(inspect.cleandoc(kind.__doc__)).get("Attributes", "")
    return [key for key in owned if f"    {key} (" not in attributes]


@pytest.mark.parametrize("name", LAYERS)
def test_layer_has_every_section(name):
    assert missing_parts(getattr(torchlite.nn, name)) == []


@pytest.mark.parametrize("name", LAYERS)
def test_args_are_the_constructor_parameters(name):
    assert documents_unknown_parameters(getattr(torchlite.nn, name)) == []


@pytest.mark.parametrize("name", [name for name in LAYERS if name != "LinearCrossEntropyOptions"])
def test_parameters_are_attributes(name):
    assert undocumented_attributes(getattr(torchlite.nn, name)) == []


@pytest.mark.parametrize("name", METHODS)
def test_module_methods(name):
    """Public methods of Module have a docstring whose Args section names their parameters in order."""
    method = getattr(torchlite.nn.Module, name)
    documented = _ITEM.findall(sections(inspect.cleandoc(method.__doc__)).get("Args", ""))
    assert documented == [parameter for parameter in inspect.signature(method).parameters if parameter != "self"]


class TestBadClassesAreFound:
    def test_no_docstring(self):
        class Child(torchlite.nn.Linear):
            pass

        assert missing_parts(Child) == ["a docstring"]

    def test_no_sections(self):
        class Bad(torchlite.nn.Module):
            """Scales its input"""

            def __init__(self, scale, offset=0, device=None, _private=None):
                super().__init__()

        assert missing_parts(Bad) == [
            "a first line of one sentence",
            "Args: scale",
            "Args: offset",
            "Shape or Returns",
            "Example",
        ]

    def test_one_parameter_and_the_code_of_the_example_are_missing(self):
        class Bad(torchlite.nn.Module):
            """Scales its input.

            Args:
                scale: The factor. An ``offset: 2`` inside of a text is no item.
                size: Not a parameter.

            Shape:
                - Input and output: ``(*)``.

            Example:
                None yet.
            """

            def __init__(self, scale, offset=0, dtype=None):
                super().__init__()

        assert missing_parts(Bad) == ["Args: offset", "Example"]
        assert documents_unknown_parameters(Bad) == ["size"]

    def test_a_parameter_is_missing(self):
        class Bad(torchlite.nn.Linear):
            """Applies an affine map.

            Attributes:
                bias (Parameter): Shape ``(out_features,)``.
            """

        assert undocumented_attributes(Bad) == ["weight"]

    def test_good_class(self):
        class Good(torchlite.nn.Module):
            """Scales its input.

            Args:
                scale: The factor.

            Returns:
                The product.

            Example:
                >>> 1 + 1
                2
            """

            def __init__(self, scale):
                super().__init__()

        assert missing_parts(Good) == []
        assert documents_unknown_parameters(Good) == []
