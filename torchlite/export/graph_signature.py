"""ExportGraphSignature: specs of an exported program's inputs and outputs."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from enum import Enum, auto
from typing import Any, TypeAlias, Union

__all__ = [
    "ConstantArgument", "CustomObjArgument", "ExportBackwardSignature", "ExportGraphSignature", "InputKind",
    "InputSpec", "OutputKind", "OutputSpec", "SymBoolArgument", "SymFloatArgument", "SymIntArgument",
    "TensorArgument", "TokenArgument",
]  # fmt: skip


@dataclasses.dataclass
class TensorArgument:
    """A tensor, by node name."""

    name: str


@dataclasses.dataclass
class TokenArgument:
    """A token that orders calls with side effects."""

    name: str


@dataclasses.dataclass
class SymIntArgument:
    """A dynamic integer, by node name."""

    name: str


@dataclasses.dataclass
class SymFloatArgument:
    """A dynamic float."""

    name: str


@dataclasses.dataclass
class SymBoolArgument:
    """A dynamic bool."""

    name: str


@dataclasses.dataclass
class CustomObjArgument:
    """An object of a TorchScript class."""

    name: str
    class_fqn: str
    fake_val: Any = None


@dataclasses.dataclass
class ConstantArgument:
    """A constant argument of the program."""

    name: str
    value: int | float | bool | str | None


ArgumentSpec: TypeAlias = Union[
    TensorArgument, SymIntArgument, SymFloatArgument, SymBoolArgument, ConstantArgument, CustomObjArgument,
    TokenArgument,
]  # fmt: skip


class InputKind(Enum):
    """Kind of a graph input."""

    USER_INPUT = auto()
    PARAMETER = auto()
    BUFFER = auto()
    CONSTANT_TENSOR = auto()
    CUSTOM_OBJ = auto()
    TOKEN = auto()


@dataclasses.dataclass
class InputSpec:
    """Spec of a graph input; `target` names the parameter, buffer or constant. Raise ValueError for a buffer without
    `persistent`.
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
    """Kind of a graph output."""

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
    """Spec of a graph output; `target` names what it updates or is the gradient of."""

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
