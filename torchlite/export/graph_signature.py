"""ExportGraphSignature: specs of an exported program's inputs and outputs."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from enum import Enum, auto
from typing import Any, TypeAlias, Union

from torchlite._settings.module_dir import make_module_dir

__all__ = [
    "ConstantArgument", "CustomObjArgument", "ExportBackwardSignature", "ExportGraphSignature", "InputKind",
    "InputSpec", "OutputKind", "OutputSpec", "SymBoolArgument", "SymFloatArgument", "SymIntArgument",
    "TensorArgument", "TokenArgument",
]  # fmt: skip


@dataclasses.dataclass
class TensorArgument:
    """A tensor of the graph.

    Args:
        name: Name of its node.
    """

    name: str


@dataclasses.dataclass
class TokenArgument:
    """A token that orders calls with side effects.

    Args:
        name: Name of its node.
    """

    name: str


@dataclasses.dataclass
class SymIntArgument:
    """An integer that is computed from sizes.

    Args:
        name: Name of its node.
    """

    name: str


@dataclasses.dataclass
class SymFloatArgument:
    """A float that is computed from sizes.

    Args:
        name: Name of its node.
    """

    name: str


@dataclasses.dataclass
class SymBoolArgument:
    """A bool that is computed from sizes.

    Args:
        name: Name of its node.
    """

    name: str


@dataclasses.dataclass
class CustomObjArgument:
    """An object of a TorchScript class.

    Args:
        name: Name of its node.
        class_fqn: Full name of the class.
        fake_val: An object that stands for it. Default: ``None``.
    """

    name: str
    class_fqn: str
    fake_val: Any = None


@dataclasses.dataclass
class ConstantArgument:
    """A constant of the program.

    Args:
        name: Name of the argument.
        value: The value.
    """

    name: str
    value: int | float | bool | str | None


ArgumentSpec: TypeAlias = Union[
    TensorArgument, SymIntArgument, SymFloatArgument, SymBoolArgument, ConstantArgument, CustomObjArgument,
    TokenArgument,
]  # fmt: skip


class InputKind(Enum):
    """What an input of the graph is: the user's, a parameter, a buffer, a constant, a custom object or a token.

    Example:
        >>> from torchlite.export.graph_signature import InputKind
        >>> program = torch.export.export(torch.nn.Linear(3, 2), (torch.ones(4, 3),))
        >>> [spec.kind.name for spec in program.graph_signature.input_specs]
        ['PARAMETER', 'PARAMETER', 'USER_INPUT']
    """

    USER_INPUT = auto()
    PARAMETER = auto()
    BUFFER = auto()
    CONSTANT_TENSOR = auto()
    CUSTOM_OBJ = auto()
    TOKEN = auto()


@dataclasses.dataclass
class InputSpec:
    """What an input of the graph is, and where its value comes from.

    Args:
        kind: An `InputKind`.
        arg: The node, such as a `TensorArgument`.
        target: Name of the parameter, buffer or constant; ``None`` for the user's inputs.
        persistent: Whether a buffer belongs to the state. Default: ``None``, for other kinds.

    Raises:
        AssertionError: ``persistent`` is not given for a buffer.

    Example:
        >>> from torchlite.export.graph_signature import *
        >>> print(InputSpec(InputKind.PARAMETER, TensorArgument("p_weight"), "weight"))
        p_weight: PARAMETER target='weight'
    """

    kind: InputKind
    arg: ArgumentSpec
    target: str | None
    persistent: bool | None = None

    def __post_init__(self) -> None:
        if self.kind is InputKind.BUFFER and self.persistent is None:
            raise AssertionError("Failed to specify persistent flag on BUFFER.")

    def __str__(self) -> str:
        target = "" if self.target is None else f" target='{self.target}'"
        persistent = "" if self.persistent is None else f" persistent={self.persistent}"
        return f"{self.arg.name}: {self.kind.name}{target}{persistent}"


class OutputKind(Enum):
    """What an output of the graph is: a result of the user, a loss, a gradient, a token, or a new value of a buffer,
    parameter or input.

    Example:
        >>> from torchlite.export.graph_signature import OutputKind
        >>> program = torch.export.export(torch.nn.ReLU(), (torch.ones(2),))
        >>> [spec.kind.name for spec in program.graph_signature.output_specs]
        ['USER_OUTPUT']
    """

    USER_OUTPUT = auto()
    LOSS_OUTPUT = auto()
    BUFFER_MUTATION = auto()
    PARAMETER_MUTATION = auto()
    GRADIENT_TO_PARAMETER = auto()
    GRADIENT_TO_USER_INPUT = auto()
    USER_INPUT_MUTATION = auto()
    TOKEN = auto()


@dataclasses.dataclass
class OutputSpec:
    """What an output of the graph is, and where its value goes.

    Args:
        kind: An `OutputKind`.
        arg: The node, such as a `TensorArgument`.
        target: Name of what it updates or is the gradient of; ``None`` for results of the user.

    Example:
        >>> from torchlite.export.graph_signature import *
        >>> print(OutputSpec(OutputKind.BUFFER_MUTATION, TensorArgument("add"), "count"))
        add: BUFFER_MUTATION target='count'
    """

    kind: OutputKind
    arg: ArgumentSpec
    target: str | None

    def __str__(self) -> str:
        target = "" if self.target is None else f" target='{self.target}'"
        return f"{self.arg.name}: {self.kind.name}{target}"


@dataclasses.dataclass
class ExportBackwardSignature:
    """Outputs of a graph that has a forward and a backward pass.

    Args:
        gradients_to_parameters: Parameter names by the output names of their gradients.
        gradients_to_user_inputs: Input names by the output names of their gradients.
        loss_output: Name of the output that is differentiated.

    Example:
        >>> torch.export.ExportBackwardSignature({"grad": "weight"}, {}, "loss").loss_output
        'loss'
    """

    gradients_to_parameters: dict[str, str]
    gradients_to_user_inputs: dict[str, str]
    loss_output: str


@dataclasses.dataclass
class ExportGraphSignature:
    """Specs of an exported graph's inputs and outputs, in order.

    Args:
        input_specs: List of `InputSpec`.
        output_specs: List of `OutputSpec`.

    Example:
        >>> from torchlite.export.graph_signature import *
        >>> spec = InputSpec(InputKind.PARAMETER, TensorArgument("p_weight"), "weight")
        >>> ExportGraphSignature([spec], []).inputs_to_parameters
        {'p_weight': 'weight'}
    """

    input_specs: list[InputSpec]
    output_specs: list[OutputSpec]

    def _input_names_of_kind(self, kind: InputKind) -> list[InputSpec]:
        return [s for s in self.input_specs if s.kind is kind]

    def _targets_of_kind(self, specs: Any, kind: Enum) -> dict[str, str]:
        return {s.arg.name: s.target for s in specs if s.kind is kind}

    @property
    def parameters(self) -> tuple[str, ...]:
        """Return the names of parameters."""
        return tuple(str(s.target) for s in self._input_names_of_kind(InputKind.PARAMETER))

    @property
    def buffers(self) -> tuple[str, ...]:
        """Return the names of buffers."""
        return tuple(str(s.target) for s in self._input_names_of_kind(InputKind.BUFFER))

    @property
    def non_persistent_buffers(self) -> tuple[str, ...]:
        """Return the names of non-persistent buffers."""
        return tuple(str(s.target) for s in self._input_names_of_kind(InputKind.BUFFER) if s.persistent is False)

    @property
    def lifted_tensor_constants(self) -> tuple[str, ...]:
        """Return the names of constant tensors."""
        return tuple(str(s.target) for s in self._input_names_of_kind(InputKind.CONSTANT_TENSOR))

    @property
    def lifted_custom_objs(self) -> tuple[str, ...]:
        """Return the names of custom objects."""
        return tuple(str(s.target) for s in self._input_names_of_kind(InputKind.CUSTOM_OBJ))

    @property
    def user_inputs(self) -> tuple[Any, ...]:
        """Return the user inputs: node names, and values of constants."""
        specs = self._input_names_of_kind(InputKind.USER_INPUT)
        return tuple(s.arg.value if isinstance(s.arg, ConstantArgument) else s.arg.name for s in specs)

    @property
    def user_outputs(self) -> tuple[Any, ...]:
        """Return the user outputs: node names, and values of constants."""
        kinds = OutputKind.USER_OUTPUT, OutputKind.LOSS_OUTPUT
        specs = [s for s in self.output_specs if s.kind in kinds]
        return tuple(s.arg.value if isinstance(s.arg, ConstantArgument) else s.arg.name for s in specs)

    @property
    def inputs_to_parameters(self) -> dict[str, str]:
        """Return parameter names by input name."""
        return self._targets_of_kind(self.input_specs, InputKind.PARAMETER)

    @property
    def inputs_to_buffers(self) -> dict[str, str]:
        """Return buffer names by input name."""
        return self._targets_of_kind(self.input_specs, InputKind.BUFFER)

    @property
    def inputs_to_lifted_tensor_constants(self) -> dict[str, str]:
        """Return constant names by input name."""
        return self._targets_of_kind(self.input_specs, InputKind.CONSTANT_TENSOR)

    @property
    def inputs_to_lifted_custom_objs(self) -> dict[str, str]:
        """Return custom object names by input name."""
        return self._targets_of_kind(self.input_specs, InputKind.CUSTOM_OBJ)

    @property
    def buffers_to_mutate(self) -> dict[str, str]:
        """Return the names of mutated buffers by output name."""
        return self._targets_of_kind(self.output_specs, OutputKind.BUFFER_MUTATION)

    @property
    def parameters_to_mutate(self) -> dict[str, str]:
        """Return the names of mutated parameters by output name."""
        return self._targets_of_kind(self.output_specs, OutputKind.PARAMETER_MUTATION)

    @property
    def user_inputs_to_mutate(self) -> dict[str, str]:
        """Return the names of mutated inputs by output name."""
        return self._targets_of_kind(self.output_specs, OutputKind.USER_INPUT_MUTATION)

    @property
    def backward_signature(self) -> ExportBackwardSignature | None:
        """Return the joint graph's backward outputs, None for other graphs."""
        losses = [s.arg.name for s in self.output_specs if s.kind is OutputKind.LOSS_OUTPUT]
        if not losses:
            return None
        return ExportBackwardSignature(
            self._targets_of_kind(self.output_specs, OutputKind.GRADIENT_TO_PARAMETER),
            self._targets_of_kind(self.output_specs, OutputKind.GRADIENT_TO_USER_INPUT),
            losses[0],
        )

    @property
    def assertion_dep_token(self) -> dict[int, str] | None:
        """Return None: assertions are graph nodes."""
        return None

    @property
    def input_tokens(self) -> tuple[str, ...]:
        """Return the names of input tokens."""
        return tuple(s.arg.name for s in self._input_names_of_kind(InputKind.TOKEN))

    @property
    def output_tokens(self) -> tuple[str, ...]:
        """Return the names of output tokens."""
        return tuple(s.arg.name for s in self.output_specs if s.kind is OutputKind.TOKEN)

    def replace_all_uses(self, old: str, new: str) -> None:
        """Renames a node in all specs.

        Args:
            old: Its name.
            new: Its new name.
        """
        specs: list[Any] = [*self.input_specs, *self.output_specs]
        for spec in specs:
            if not isinstance(spec.arg, ConstantArgument) and spec.arg.name == old:
                spec.arg.name = new

    def get_replace_hook(self, replace_inputs: bool = False) -> Callable:
        """Returns a hook of graph modules that updates the specs where nodes are replaced.

        Args:
            replace_inputs: Whether specs of inputs are updated too. Default: ``False``.
        """

        def replaced(old: Any, new: str, user: Any) -> None:
            if user.op == "output" or (replace_inputs and old.op == "placeholder"):
                self.replace_all_uses(old.name, new)

        return replaced

    def __str__(self) -> str:
        inputs = "\n".join(map(str, self.input_specs))
        outputs = "\n".join(map(str, self.output_specs))
        return f"\n# inputs\n{inputs}\n\n# outputs\n{outputs}\n"


__dir__ = make_module_dir(globals())
