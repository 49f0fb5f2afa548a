"""Profile events with their times, their averages by name, and tables of them."""

from __future__ import annotations

import gzip
import json
import os
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

__all__ = [
    "EventList", "EventMetadata", "FormattedTimesMixin", "FunctionEvent", "FunctionEventAvg", "Interval", "Kernel",
    "MemRecordsAcc", "StringTable",
]  # fmt: skip


class EventMetadata:
    """Values of an event other than its times, as attributes.

    Args:
        values: The attributes.

    Example:
        >>> torch.autograd.profiler_util.EventMetadata(stream=1).stream
        1
    """

    def __init__(self, **values: Any) -> None:
        self.__dict__.update(values)


class Interval:
    """Interval of time, in microseconds.

    Args:
        start: Its start.
        end: Its end.

    Example:
        >>> torch.autograd.profiler_util.Interval(2.0, 5.0).elapsed_us()
        3.0
    """

    __slots__ = ("start", "end")

    def __init__(self, start: float, end: float) -> None:
        self.start, self.end = start, end

    def elapsed_us(self) -> float:
        """Returns the duration in microseconds."""
        return self.end - self.start

    def __repr__(self) -> str:
        return f"Interval({self.start}, {self.end})"


class Kernel:
    """Kernel that an event ran on a device.

    Args:
        name: The kernel's name.
        device: The index of the device.
        duration: The time in microseconds.

    Example:
        >>> torch.autograd.profiler_util.Kernel("add", 0, 3.5).duration
        3.5
    """

    def __init__(self, name: str, device: int, duration: float) -> None:
        self.name, self.device, self.duration = name, device, duration


class StringTable(defaultdict):
    """Dictionary that returns each missing key as its own value, so equal strings are one object.

    Example:
        >>> torch.autograd.profiler_util.StringTable()["aten::add"]
        'aten::add'
    """

    def __missing__(self, key: str) -> str:
        self[key] = key
        return key


class MemRecordsAcc:
    """Sorted memory records, looked up by an interval of time.

    Args:
        mem_records: Pairs of a time in microseconds and a number of bytes.

    Example:
        >>> torch.autograd.profiler_util.MemRecordsAcc([(3.0, 64), (1.0, 32)]).in_interval(0.0, 2.0)
        [(1.0, 32)]
    """

    def __init__(self, mem_records: Iterable[tuple[float, int]]) -> None:
        self._records = sorted(mem_records)

    def in_interval(self, start_us: float, end_us: float) -> list[tuple[float, int]]:
        """Returns the records between two times, both included.

        Args:
            start_us: The first time in microseconds.
            end_us: The last time in microseconds.
        """
        return [record for record in self._records if start_us <= record[0] <= end_us]


def _format_time(time_us: float) -> str:
    """A time with the unit that suits it."""
    if time_us >= 1e6:
        return f"{time_us / 1e6:.3f}s"
    return f"{time_us / 1e3:.3f}ms" if time_us >= 1e3 else f"{time_us:.3f}us"


def _format_memory(nbytes: float) -> str:
    """A number of bytes with the unit that suits it."""
    for unit, size in (("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10)):
        if abs(nbytes) >= size:
            return f"{nbytes / size:.2f} {unit}"
    return f"{nbytes} B"


def _format_share(part: float, whole: float) -> str:
    return f"{part * 100 / whole:.2f}%" if whole else "NaN"


class FormattedTimesMixin:
    """Times of an event or an average: totals, times per call, and both as text with a unit.

    Example:
        >>> from torchlite.autograd.profiler_util import FunctionEvent
        >>> event = FunctionEvent(0, "aten::add", thread=0, start_us=0.0, end_us=1500.0)
        >>> event.cpu_time, event.cpu_time_str
        (1500.0, '1.500ms')
    """

    count: int
    cpu_time_total: float
    self_cpu_time_total: float
    device_time_total: float
    self_device_time_total: float

    @property
    def cpu_time(self) -> float:
        """Time per call on the CPU, in microseconds."""
        return self.cpu_time_total / self.count if self.count else 0.0

    @property
    def device_time(self) -> float:
        """Time per call on the device, in microseconds."""
        return self.device_time_total / self.count if self.count else 0.0

    @property
    def cuda_time(self) -> float:
        """Another name of `device_time`."""
        return self.device_time

    @property
    def cuda_time_total(self) -> float:
        """Another name of `device_time_total`."""
        return self.device_time_total

    @property
    def self_cuda_time_total(self) -> float:
        """Another name of `self_device_time_total`."""
        return self.self_device_time_total

    cpu_time_str = property(lambda self: _format_time(self.cpu_time))
    cpu_time_total_str = property(lambda self: _format_time(self.cpu_time_total))
    self_cpu_time_total_str = property(lambda self: _format_time(self.self_cpu_time_total))
    device_time_str = property(lambda self: _format_time(self.device_time))
    device_time_total_str = property(lambda self: _format_time(self.device_time_total))
    self_device_time_total_str = property(lambda self: _format_time(self.self_device_time_total))


class FunctionEvent(FormattedTimesMixin):
    """One run of an op, of a node of a backward pass, or of a `record_function` region.

    Args:
        id: Number of the event.
        name: Name of the op or region.
        thread: Number of the thread.
        start_us: Start in microseconds.
        end_us: End in microseconds. Default: 0.
        overload_name: Name of the op's overload. Default: none.
        fwd_thread: Thread of the forward op that a node of backward belongs to. Default: ``None``.
        input_shapes: Shapes of the inputs. Default: ``None``.
        stack: Lines of the program, the innermost first. Default: none.
        scope: Number of the kind of event. Default: 0.
        use_device: Type of the device that is timed. Default: ``None``.
        cpu_memory_usage: Bytes that the event allocated on the CPU. Default: 0.
        device_memory_usage: Bytes that it allocated on the device. Default: 0.
        is_async: Whether the event may overlap others of its thread. Default: ``False``.
        is_remote: Whether it ran in another process. Default: ``False``.
        sequence_nr: Number that a forward op shares with its node of backward. Default: -1.
        node_id: Number of the process. Default: -1.
        device_type: Type of the device that ran it. Default: ``"cpu"``.
        device_index: Index of that device. Default: 0.
        device_resource_id: Number of the thread or stream. Default: ``thread``.
        is_legacy: Whether a profiler of an old kind recorded it. Default: ``False``.
        flops: Estimated floating point operations. Default: ``None``.
        trace_name: Name in trace files. Default: ``name``.
        concrete_inputs: Values of the inputs. Default: none.
        kwinputs: Values of keyword inputs. Default: none.
        is_user_annotation: Whether it is a `record_function` region. Default: ``False``.
        metadata_json: JSON text of other values. Default: ``None``.

    Example:
        >>> from torchlite.autograd.profiler_util import FunctionEvent
        >>> event = FunctionEvent(0, "aten::add", thread=0, start_us=2.0, end_us=5.0)
        >>> event.key, event.cpu_time_total
        ('aten::add', 3.0)
    """

    def __init__(
        self, id: int, name: str, thread: int, start_us: float, end_us: float = 0.0, overload_name: str | None = None,
        fwd_thread: int | None = None, input_shapes: Any = None, stack: Any = (), scope: int = 0,
        use_device: str | None = None, cpu_memory_usage: int = 0, device_memory_usage: int = 0, is_async: bool = False,
        is_remote: bool = False, sequence_nr: int = -1, node_id: int = -1, device_type: Any = "cpu",
        device_index: int = 0, device_resource_id: int | None = None, is_legacy: bool = False, flops: int | None = None,
        trace_name: str | None = None, concrete_inputs: Any = None, kwinputs: Any = None,
        is_user_annotation: bool = False, metadata_json: str | None = None,
    ) -> None:  # fmt: skip
        self.id, self.node_id, self.name, self.trace_name, self.thread = id, node_id, name, trace_name or name, thread
        self.time_range = Interval(start_us, end_us)
        self.count, self.is_async, self.is_remote, self.is_legacy = 1, is_async, is_remote, is_legacy
        self.cpu_children: list[FunctionEvent] = []
        self.cpu_parent: FunctionEvent | None = None
        self.kernels: list[Kernel] = []
        self.input_shapes, self.stack, self.scope, self.use_device = input_shapes, list(stack or ()), scope, use_device
        self.concrete_inputs: list[Any] = list(concrete_inputs or ())
        self.kwinputs: dict[str, Any] = dict(kwinputs or {})
        self.is_user_annotation, self.metadata_json = is_user_annotation, metadata_json
        self.cpu_memory_usage, self.device_memory_usage = cpu_memory_usage, device_memory_usage
        self.flops, self.sequence_nr, self.fwd_thread = flops, sequence_nr, fwd_thread
        self.own_device_time = 0.0
        self.device_index, self.device_type, self.overload_name = device_index, device_type, overload_name or ""
        self.device_resource_id = thread if device_resource_id is None else device_resource_id

    def append_cpu_child(self, child: FunctionEvent) -> None:
        """Adds an event that ran inside this one.

        Args:
            child: The inner event.
        """
        self.cpu_children.append(child)

    def set_cpu_parent(self, parent: FunctionEvent) -> None:
        """Sets the event that this one ran inside.

        Args:
            parent: The outer event.
        """
        self.cpu_parent = parent

    @property
    def key(self) -> str:
        """The name, by which averages are taken."""
        return self.name

    def set_name(self, name: str) -> None:
        """Sets the name.

        Args:
            name: The new name.
        """
        self.name = name

    def append_kernel(self, name: str, device: int, duration: float) -> None:
        """Adds a kernel that the event ran on a device, and its time.

        Args:
            name: The kernel's name.
            device: The index of the device.
            duration: The time in microseconds.
        """
        self.kernels.append(Kernel(name, device, duration))
        self.own_device_time += duration

    @property
    def cpu_time_total(self) -> float:  # type: ignore[override]
        """Time on the CPU, in microseconds."""
        return self.time_range.elapsed_us()

    @property
    def self_cpu_time_total(self) -> float:  # type: ignore[override]
        """Time on the CPU without that of the children, in microseconds."""
        return self.cpu_time_total - sum(child.cpu_time_total for child in self.cpu_children)

    @property
    def device_time_total(self) -> float:  # type: ignore[override]
        """Time on the device, in microseconds."""
        return max(self.own_device_time, sum(child.device_time_total for child in self.cpu_children))

    @property
    def self_device_time_total(self) -> float:  # type: ignore[override]
        """Time on the device without that of the children, in microseconds."""
        return max(self.own_device_time - sum(child.device_time_total for child in self.cpu_children), 0.0)

    @property
    def self_cpu_memory_usage(self) -> int:
        """Bytes that the event allocated, without those of its children."""
        return self.cpu_memory_usage - sum(child.cpu_memory_usage for child in self.cpu_children)

    @property
    def self_device_memory_usage(self) -> int:
        """Bytes that the event allocated on the device, without those of its children."""
        return self.device_memory_usage - sum(child.device_memory_usage for child in self.cpu_children)

    def __repr__(self) -> str:
        return (
            f"<FunctionEvent id={self.id} name={self.name} cpu_time={self.cpu_time_str} thread={self.thread} "
            f"input_shapes={self.input_shapes}>"
        )


class FunctionEventAvg(FormattedTimesMixin):
    """Sum over events of one name; `FormattedTimesMixin` gives the times per call.

    Example:
        >>> from torchlite.autograd.profiler_util import FunctionEvent, FunctionEventAvg
        >>> average = FunctionEventAvg()
        >>> for end in (3.0, 5.0):
        ...     average += FunctionEvent(0, "aten::add", thread=0, start_us=0.0, end_us=end)
        >>> average.count, average.cpu_time_total, average.cpu_time
        (2, 8.0, 4.0)
    """

    def __init__(self) -> None:
        self.key: Any = None
        self.count, self.scope, self.is_legacy = 0, 0, False
        self.cpu_time_total = self.self_cpu_time_total = 0.0
        self.device_time_total = self.self_device_time_total = 0.0
        self.cpu_memory_usage = self.self_cpu_memory_usage = 0
        self.device_memory_usage = self.self_device_memory_usage = 0
        self.input_shapes: Any = None
        self.stack: list = []
        self.flops = 0
        self.use_device: str | None = None
        self.is_user_annotation = False
        self.cpu_children: Any = None
        self.cpu_parent: Any = None
        self.device_type = "cpu"

    def add(self, other: Any) -> FunctionEventAvg:
        """Adds an event, or another average of the same name.

        Args:
            other: The event or average.

        Returns:
            The object itself.

        Raises:
            AssertionError: ``other`` has another name.
        """
        if self.key is None:
            self.key, self.input_shapes, self.stack = other.key, other.input_shapes, other.stack
            self.scope, self.use_device = other.scope, other.use_device
            self.is_user_annotation = other.is_user_annotation
            self.cpu_parent, self.cpu_children = other.cpu_parent, other.cpu_children
        elif self.key != other.key:
            raise AssertionError(f"events of {self.key!r} and {other.key!r} have no average")
        for name in (
            "cpu_time_total", "self_cpu_time_total", "device_time_total", "self_device_time_total", "cpu_memory_usage",
            "self_cpu_memory_usage", "device_memory_usage", "self_device_memory_usage", "count",
        ):  # fmt: skip
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.flops += other.flops or 0
        return self

    def __iadd__(self, other: Any) -> FunctionEventAvg:
        return self.add(other)

    def __repr__(self) -> str:
        return (
            f"<FunctionEventAvg key={self.key} self_cpu_time={self.self_cpu_time_total_str} "
            f"cpu_time={self.cpu_time_str} input_shapes={self.input_shapes}>"
        )


class EventList(list):
    """List of events or averages that can be averaged, shown as a table and written to files.

    Args:
        events: The events. Default: none.
        use_device: Type of the device whose times tables show. Default: ``None``.
        profile_memory: Whether tables show memory. Default: ``False``.
        with_flops: Whether tables show floating point operations. Default: ``False``.
        metadata: Items for trace files. Default: none.

    Example:
        >>> from torchlite.autograd.profiler_util import EventList, FunctionEvent
        >>> events = EventList(FunctionEvent(i, "aten::add", 0, i * 10.0, i * 10.0 + 4.0) for i in range(3))
        >>> events.key_averages()[0].count, events.self_cpu_time_total
        (3, 12.0)
    """

    def __init__(self, events: Iterable[Any] = (), *, use_device: str | None = None, profile_memory: bool = False,
                 with_flops: bool = False, metadata: dict | None = None) -> None:  # fmt: skip
        super().__init__(events)
        self._use_device, self._profile_memory, self._with_flops = use_device, profile_memory, with_flops
        self._metadata = metadata or {}

    def _build_tree(self) -> None:
        """Find for each event of a thread the one that it is a part of, by their times."""
        for thread in {event.thread for event in self}:
            around: list[Any] = []
            mine = [e for e in self if e.thread == thread and not e.is_async]
            for event in sorted(mine, key=lambda e: (e.time_range.start, -e.time_range.end)):
                while around and (
                    event.time_range.start >= around[-1].time_range.end
                    or event.time_range.end > around[-1].time_range.end
                ):
                    around.pop()
                if around and event.cpu_parent is None:
                    around[-1].append_cpu_child(event)
                    event.set_cpu_parent(around[-1])
                around.append(event)

    def _copy_with_events(self, events: Iterable[Any]) -> EventList:
        return EventList(
            events, use_device=self._use_device, profile_memory=self._profile_memory, with_flops=self._with_flops
        )

    @property
    def self_cpu_time_total(self) -> float:
        """The time of all events without that of their children, in microseconds."""
        return sum(event.self_cpu_time_total for event in self)

    def __str__(self) -> str:
        return self.table()

    def key_averages(
        self, group_by_input_shapes: bool = False, group_by_stack_n: int = 0, group_by_overload_name: bool = False
    ) -> EventList:
        """Returns one average for all events of a name.

        Args:
            group_by_input_shapes: Whether events of other input shapes count apart. Default: ``False``.
            group_by_stack_n: The number of innermost stack lines by which events count apart. Default: 0.
            group_by_overload_name: Whether events of other overloads count apart. Default: ``False``.

        Returns:
            An `EventList` of `FunctionEventAvg` objects.
        """
        found: dict[Any, FunctionEventAvg] = {}
        for event in self:
            key: tuple = (event.key, event.scope)
            if group_by_input_shapes:
                key += (str(event.input_shapes),)
            if group_by_overload_name:
                key += (event.overload_name,)
            if group_by_stack_n > 0:
                key += tuple(event.stack[:group_by_stack_n])
            found.setdefault(key, FunctionEventAvg()).add(event)
        averages = self._copy_with_events(found.values())
        for average in averages:
            average.stack = average.stack[:group_by_stack_n]
            if not group_by_input_shapes:
                average.input_shapes = ""
        return averages

    def total_average(self) -> FunctionEventAvg:
        """Returns the sum of all events, as one `FunctionEventAvg` with the key ``"Total"``."""
        total = FunctionEventAvg()
        for event in self:
            total.key = event.key
            total.add(event)
        total.key = "Total" if self else None
        return total

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_src_column_width: int = 75,
        max_name_column_width: int = 55,
        max_shapes_column_width: int = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
        time_unit: str | None = None,
    ) -> str:
        """Returns the events as a table of text.

        Args:
            sort_by: The attribute to sort by, the greatest first: ``"cpu_time_total"``, ``"self_cpu_time_total"``,
                ``"device_time_total"``, ``"cpu_memory_usage"``, ``"count"`` and others. Default: the order of the list.
            row_limit: The number of rows; negative for all. Default: 100.
            max_src_column_width: Width of the source column in characters. Default: 75.
            max_name_column_width: Width of the name column. Default: 55.
            max_shapes_column_width: Width of the column of input shapes. Default: 80.
            header: A title above the table. Default: none.
            top_level_events_only: Whether to leave out events inside others. Default: ``False``.
            time_unit: ``"s"``, ``"ms"`` or ``"us"`` for all times. Default: a unit that suits each.

        Raises:
            AttributeError: The events have no attribute ``sort_by``.
        """
        events = list(self)
        if sort_by is not None:
            name = sort_by.replace("cuda", "device")
            if any(not hasattr(event, name) for event in events):
                raise AttributeError(f"events have no {sort_by!r} to sort by")
            events.sort(key=lambda event: getattr(event, name), reverse=True)
        if top_level_events_only:
            events = [event for event in events if event.cpu_parent is None]
        columns = self._visible_columns(
            events, max_src_column_width, max_name_column_width, max_shapes_column_width, time_unit
        )
        rows = [[cell(event) for _, cell in columns] for event in events[: row_limit if row_limit >= 0 else None]]
        widths = [
            max([len(title), *(len(row[i]) for row in rows)]) + (0 if i == 0 else 2)
            for i, (title, _) in enumerate(columns)
        ]
        line = "  ".join("-" * width for width in widths)
        lines = [] if header is None else ["=" * len(line), header]
        lines += [line, "  ".join(title.rjust(w) for (title, _), w in zip(columns, widths, strict=True)), line]
        lines += ["  ".join(cell.rjust(w) for cell, w in zip(row, widths, strict=True)) for row in rows]
        lines += [line, f"Self CPU time total: {_format_time(self.self_cpu_time_total)}"]
        if self._use_device:
            device = sum(event.self_device_time_total for event in self)
            lines.append(f"Self {self._use_device.upper()} time total: {_format_time(device)}")
        return "\n".join(lines) + "\n"

    def _visible_columns(
        self, events: list, source: int, name_width: int, shapes: int, unit: str | None
    ) -> list[tuple]:
        """(title, event -> text) of each column with content."""

        def shorten_name(text: Any, width: int) -> str:
            text = str(text)
            return text if len(text) <= width or width <= 0 else text[: width - 3] + "..."

        def format_time(time: float) -> str:
            if unit is None:
                return _format_time(time)
            return f"{time / {'s': 1e6, 'ms': 1e3, 'us': 1.0}[unit]:.3f}{unit}"

        cpu = self.self_cpu_time_total
        columns: list[tuple] = [
            ("Name", lambda e: shorten_name(e.key, name_width)),
            ("Self CPU %", lambda e: _format_share(e.self_cpu_time_total, cpu)),
            ("Self CPU", lambda e: format_time(e.self_cpu_time_total)),
            ("CPU total %", lambda e: _format_share(e.cpu_time_total, cpu)),
            ("CPU total", lambda e: format_time(e.cpu_time_total)),
            ("CPU time avg", lambda e: format_time(e.cpu_time)),
        ]
        if self._use_device:
            device, whole = self._use_device.upper(), sum(e.self_device_time_total for e in self)
            columns += [
                (f"Self {device}", lambda e: format_time(e.self_device_time_total)),
                (f"Self {device} %", lambda e: _format_share(e.self_device_time_total, whole)),
                (f"{device} total", lambda e: format_time(e.device_time_total)),
                (f"{device} time avg", lambda e: format_time(e.device_time)),
            ]
        if self._profile_memory:
            columns += [
                ("CPU Mem", lambda e: _format_memory(e.cpu_memory_usage)),
                ("Self CPU Mem", lambda e: _format_memory(e.self_cpu_memory_usage)),
            ]
            if self._use_device:
                device = self._use_device.upper()
                columns += [
                    (f"{device} Mem", lambda e: _format_memory(e.device_memory_usage)),
                    (f"Self {device} Mem", lambda e: _format_memory(e.self_device_memory_usage)),
                ]
        columns.append(("# of Calls", lambda e: str(e.count)))
        if any(event.input_shapes for event in events):
            columns.append(("Input Shapes", lambda e: shorten_name(e.input_shapes, shapes)))
        if any(event.stack for event in events):
            columns.append(("Source Location", lambda e: shorten_name(e.stack[0] if e.stack else "", source)))
        if self._with_flops:
            columns.append(("Total MFLOPs", lambda e: f"{e.flops / 1e6:.3f}" if e.flops else "--"))
        return columns

    def export_chrome_trace(self, path: str | os.PathLike) -> None:
        """Writes the events as JSON for chrome://tracing and Perfetto.

        Args:
            path: The name of the file; one that ends in ``.gz`` is compressed.
        """
        trace: list[dict] = []
        for event in self:
            arguments: dict[str, Any] = {"External id": event.id}
            if event.input_shapes:
                arguments["Input Dims"] = event.input_shapes
            if event.stack:
                arguments["Call stack"] = "\n".join(event.stack)
            common = {"ph": "X", "pid": os.getpid(), "name": event.name, "args": arguments}
            category = "user_annotation" if event.is_user_annotation else "cpu_op"
            start = event.time_range.start
            trace.append({**common, "cat": category, "tid": event.thread, "ts": start,
                          "dur": event.time_range.elapsed_us()})  # fmt: skip
            if event.own_device_time:
                trace.append({**common, "cat": "kernel", "tid": f"{event.use_device}", "ts": start,
                              "dur": event.own_device_time})  # fmt: skip
        text = json.dumps({"schemaVersion": 1, "deviceProperties": [], "traceEvents": trace, **self._metadata})
        data = text.encode()
        with open(path, "wb") as file:
            file.write(gzip.compress(data) if str(path).endswith(".gz") else data)

    def supported_export_stacks_metrics(self) -> list[str]:
        """Returns the metrics that `export_stacks` supports."""
        return ["self_cpu_time_total", "self_cuda_time_total", "self_xpu_time_total", "self_privateuse1_time_total"]

    def export_stacks(self, path: str, metric: str) -> None:
        """Writes a line for each event: its stack, the outermost first, and its time in microseconds.

        Tools that draw flame graphs read this format.

        Args:
            path: The name of the file.
            metric: One of `supported_export_stacks_metrics`.

        Raises:
            ValueError: ``metric`` is none of them.
        """
        if metric not in self.supported_export_stacks_metrics():
            raise ValueError("metric should be one of: " + str(self.supported_export_stacks_metrics()))
        table = str.maketrans(" ;\t\n", "____")
        with open(path, "w") as file:
            for event in self:
                value = getattr(event, metric.replace("xpu", "device").replace("privateuse1", "device"))
                if event.stack and int(value) > 0:
                    lines = ";".join(line.translate(table) for line in reversed(event.stack))
                    file.write(f"{lines} {int(value)}\n")
