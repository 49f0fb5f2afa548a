"""Splitting of a model into pipeline stages, at `pipe_split` calls or at modules."""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any

import torchlite as torch
from torchlite.fx import Graph, GraphModule, Node
from torchlite.nn.modules.module import Module

from ._utils import PipeInfo
from .stage import PipelineStage, build_stage

_library = torch.library.Library("pippy", "FRAGMENT")
_library.define("_pipe_split() -> ()")
_library.impl("_pipe_split", lambda: None, "CompositeExplicitAutograd")


def pipe_split() -> None:
    """Mark the end of a stage in a module's `forward`. No effect when the module runs directly.

    >>> import torchlite as torch
    >>> from torchlite.distributed.pipelining import pipe_split, pipeline
    >>> class Two(torch.nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.one, self.two = torch.nn.Linear(2, 3), torch.nn.Linear(3, 1)
    ...     def forward(self, x):
    ...         x = self.one(x).relu()
    ...         pipe_split()
    ...         return self.two(x)
    >>> pipe = pipeline(Two(), (torch.ones(4, 2),))
    >>> pipe.num_stages, list(pipe.get_stage_module(1).state_dict())
    (2, ['two.weight', 'two.bias'])
    """
    torch.ops.pippy._pipe_split()


class SplitPoint(Enum):
    """Place of a split: before a module or after it.

    Example:
        >>> from torchlite.distributed.pipelining import SplitPoint
        >>> [point.name for point in SplitPoint]
        ['BEGINNING', 'END']
    """

    BEGINNING = 1
    END = 2


def annotate_split_points(mod: Module, spec: dict[str, SplitPoint]) -> list[Any]:
    """Mark modules, by their names, as the beginning or the end of a stage; return handles that remove the marks."""
    handles = []
    for name, where in spec.items():
        module = mod.get_submodule(name)
        if where is SplitPoint.BEGINNING:
            handles.append(module.register_forward_pre_hook(lambda *_: pipe_split()))
        elif where is SplitPoint.END:
            handles.append(module.register_forward_hook(lambda *_: pipe_split()))
        else:
            raise ValueError("Unknown split point type.")
    return handles


@contextlib.contextmanager
def _mark_split_points(mod: Module, spec: dict[str, SplitPoint]) -> Iterator[None]:
    handles = annotate_split_points(mod, spec)
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _is_split_marker(node: Node) -> bool:
    return node.op == "call_function" and node.target == torch.ops.pippy._pipe_split.default


class _GraphSplitter:
    """Splits a flat exported program. Values for a later stage pass through all stages in between."""

    def __init__(self, program: GraphModule) -> None:
        self.program = program
        self.stage_of: dict[Node, int] = {}
        self.stages = 1
        computing = [n for n in program.graph.nodes if n.op == "call_function"]
        for node in computing:
            if _is_split_marker(node):
                self.stages += 1
            else:
                self.stage_of[node] = self.stages - 1
        self.inputs = [n for n in program.graph.nodes if n.op == "placeholder"]
        self.stage_of |= dict.fromkeys(self.inputs, 0)
        self.output = next(n for n in program.graph.nodes if n.op == "output")
        self.until: dict[Node, int] = {}  # the last stage that needs a value
        for node in [*computing, self.output]:
            stage = self.stages - 1 if node is self.output else self.stage_of.get(node, 0)
            for used in node.all_input_nodes:
                self.until[used] = max(stage, self.until.get(used, 0))

    def values_between_stages(self, stage: int) -> list[Node]:
        """Return the values that a stage passes to the next."""
        return [n for n, made in self.stage_of.items() if made <= stage < self.until.get(n, -1)]

    def make_stage(self, stage: int) -> GraphModule:
        """Return a stage, whose parameters have their names in the model."""
        graph, found = Graph(), {}
        for node in self.inputs if stage == 0 else self.values_between_stages(stage - 1):
            default = node.args[0] if node.op == "placeholder" and node.args else ...
            name = str(node.target) if node.op == "placeholder" else node.name
            found[node] = graph.placeholder(name, default_value=default)

        def copy_attribute(node: Node) -> Node:
            if node not in found:  # a parameter, a buffer or a constant, at its path in the model
                found[node] = graph.get_attr(str(node.target))
            return found[node]

        for node in self.program.graph.nodes:
            if self.stage_of.get(node) == stage and node.op != "placeholder":
                found[node] = graph.node_copy(node, copy_attribute)
        if stage == self.stages - 1:
            results = [torch.fx.map_arg(one, copy_attribute) for one in self.output.args[0]]
        else:
            results = [copy_attribute(node) for node in self.values_between_stages(stage)]
        graph.output(results[0] if len(results) == 1 else tuple(results))
        return GraphModule(self.program, graph, f"Stage{stage}")


class Pipe(Module):
    """Model in stages, as `pipeline` returns it; a call runs all of them in this process.

    The stages are the modules ``submod_pp_0``, ``submod_pp_1`` and so on of ``split_gm``.

    Args:
        split_gm: The graph of the stages.
        num_stages: The number of stages.
        has_loss_and_backward: Whether the graph contains them.
        loss_spec: Where the loss is among the results.

    Example:
        >>> from torchlite.distributed.pipelining import SplitPoint, pipeline
        >>> model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Linear(3, 1))
        >>> pipe = pipeline(model, (torch.ones(4, 2),), split_spec={"1": SplitPoint.BEGINNING})
        >>> list(dict(pipe.split_gm.named_children()))
        ['submod_pp_0', 'submod_pp_1']
    """

    def __init__(self, split_gm: GraphModule, num_stages: int, has_loss_and_backward: bool, loss_spec: Any) -> None:
        super().__init__()
        self.split_gm, self.num_stages = split_gm, num_stages
        self.has_loss_and_backward, self.loss_spec = has_loss_and_backward, loss_spec

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Returns the model's results, as a tuple.

        Args:
            args: The model's arguments.
            kwargs: The model's keyword arguments.
        """
        found = self.split_gm(*args, **kwargs)
        return tuple(found) if isinstance(found, list | tuple) else (found,)

    def get_stage_module(self, stage_idx: int) -> Module:
        """Returns the module of a stage.

        Args:
            stage_idx: The stage's number.

        Raises:
            ValueError: There is no such stage.
        """
        if not 0 <= stage_idx < self.num_stages:
            raise ValueError(f"Invalid stage index {stage_idx}!")
        return getattr(self.split_gm, f"submod_pp_{stage_idx}")

    def info(self) -> PipeInfo:
        """Return the information for `build_stage`."""
        return PipeInfo(self.split_gm.graph, self.num_stages, self.has_loss_and_backward)

    def build_stage(self, stage_index: int, device: Any, group: Any = None) -> PipelineStage:
        """Returns a stage on a device, for a schedule.

        Args:
            stage_index: The stage's number.
            device: The device.
            group: The group. Default: the default group.
        """
        module = self.get_stage_module(stage_index)
        module.to(device)
        return build_stage(module, stage_index, self.info(), device, group)

    def print_readable(self) -> None:
        """Print the code of all stages."""
        print("Pipe:")
        self.split_gm.print_readable()

    @staticmethod
    def from_tracing(
        mod: Module,
        example_args: tuple[Any, ...],
        example_kwargs: dict[str, Any] | None = None,
        split_policy: Callable[[GraphModule], GraphModule] | None = None,
    ) -> Pipe:
        """Splits a model at the marks that its trace reaches.

        Args:
            mod: The model.
            example_args: Arguments to trace it with.
            example_kwargs: Keyword arguments to trace it with. Default: none.
            split_policy: Adds marks to the graph and returns it. Default: none.

        Raises:
            RuntimeError: `torch.export` cannot capture the model.
        """
        try:
            program = torch.export.export(mod, example_args, example_kwargs).module(check_guards=False)
        except Exception as error:  # the user's model may raise anything
            raise RuntimeError(
                "It seems that we cannot capture your model as a full graph. Typical reasons include graph breaks, "
                "data/shape-dependent control flow, or missing meta kernels for custom operators. You can use our "
                "manual pipeline interfaces, or try to fix the graph breaks, see "
                "https://pytorch.org/docs/stable/export.html"
            ) from error
        if split_policy is not None:
            program = split_policy(program)
        cutter = _GraphSplitter(program)
        outer, parts = Graph(), {}
        env = {node: outer.node_copy(node) for node in cutter.inputs}
        given = list(env.values())
        for stage in range(cutter.stages):
            parts[f"submod_pp_{stage}"] = cutter.make_stage(stage)
            call = outer.call_module(f"submod_pp_{stage}", tuple(given))
            crossing = cutter.values_between_stages(stage)
            given = [call]
            if len(crossing) > 1:
                given = [outer.call_function(operator.getitem, (call, i)) for i in range(len(crossing))]
        outer.output(given[0])
        return Pipe(GraphModule(parts, outer), cutter.stages, False, None)


def pipeline(
    module: Module,
    mb_args: tuple[Any, ...],
    mb_kwargs: dict[str, Any] | None = None,
    split_spec: dict[str, SplitPoint] | None = None,
    split_policy: Callable[[GraphModule], GraphModule] | None = None,
) -> Pipe:
    """Splits a model into stages: traces it with the arguments of a microbatch, and splits the graph.

    Parameters keep their names. A parameter that several stages use is in each of them; each gets its part of the
    gradient,
    and the program adds the parts up. A value for a later stage passes through all stages in between.

    Args:
        module: The model. Its code may call `pipe_split`.
        mb_args: Arguments of the size of a microbatch.
        mb_kwargs: Keyword arguments of the size of a microbatch. Default: none.
        split_spec: A `SplitPoint` for the names of submodules. Default: none.
        split_policy: Adds marks to the graph and returns it; excludes ``split_spec``. Default: none.

    Returns:
        A `Pipe`.

    Raises:
        ValueError: Both ``split_spec`` and ``split_policy`` are given.
        RuntimeError: `torch.export` cannot capture the model.

    Example:
        >>> from torchlite.distributed.pipelining import SplitPoint, pipeline
        >>> model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU(), torch.nn.Linear(3, 1))
        >>> pipe = pipeline(model, (torch.ones(4, 2),), split_spec={"2": SplitPoint.BEGINNING})
        >>> pipe.num_stages, pipe(torch.ones(4, 2))[0].shape
        (2, torch.Size([4, 1]))
    """
    if split_spec is not None and split_policy is not None:
        raise ValueError("Cannot specify both `split_spec` and `split_policy`. Please use only one of them.")
    with _mark_split_points(module, split_spec or {}):
        return Pipe.from_tracing(module, mb_args, mb_kwargs, split_policy)
