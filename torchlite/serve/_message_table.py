"""Classes of protobuf messages, from a table of their fields.

The classes are in a pool of their own: no generated code ties them to a version of protobuf, and a client library in
the same process may have messages of the same names.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_Field = descriptor_pb2.FieldDescriptorProto


class MessageTable:
    """The messages of a package.

    Args:
        file: The name of their description.
        package: Their package.
        text: A message a paragraph: its name, then its fields as `type name number`. `*` is a list, `<>` a map from
            texts, `|` a field of which a message has one, and `?` a field that knows whether it is set. A dot stands
            before the names of messages within another.
    """

    def __init__(self, file: str, package: str, text: str) -> None:
        self._file, self._package = file, package
        self._lines = text.strip().replace("\n    ", " ").split("\n")

    def make_file(self) -> descriptor_pb2.FileDescriptorProto:
        """Return the description of all messages."""
        made = descriptor_pb2.FileDescriptorProto(name=self._file, package=self._package, syntax="proto3")
        messages: dict[str, Any] = {}
        for line in self._lines:
            name, _, fields = line.partition(":")
            outer, dot, inner = name.partition(".")
            message = messages[outer].nested_type.add(name=inner) if dot else made.message_type.add(name=name)
            messages[name] = message
            for text in filter(None, map(str.strip, fields.split(","))):
                self._add_field(message, f".{self._package}.{name}", *text.split())
        return made

    def _add_field(self, message: Any, own: str, kind: str, name: str, number: str) -> None:
        field = message.field.add(name=name, number=int(number), label=_Field.LABEL_OPTIONAL)
        word = kind.lstrip("*<>|?")
        if kind.startswith("<>"):
            self._add_map(message, field, own, word)
            return
        if kind.startswith("*"):
            field.label = _Field.LABEL_REPEATED
        if kind.startswith("|"):
            if not message.oneof_decl:
                message.oneof_decl.add(name="parameter_choice")
            field.oneof_index = 0
        if kind.startswith("?"):
            field.proto3_optional, field.oneof_index = True, len(message.oneof_decl)
            message.oneof_decl.add(name=f"_{name}")
        self._set_type(field, own, word)

    def _set_type(self, field: Any, own: str, word: str) -> None:
        if word.startswith("."):
            field.type, field.type_name = _Field.TYPE_MESSAGE, own + word
        elif word[0].isupper():
            field.type, field.type_name = _Field.TYPE_MESSAGE, f".{self._package}.{word}"
        else:
            field.type = getattr(_Field, f"TYPE_{word.upper()}")

    def _add_map(self, message: Any, field: Any, own: str, word: str) -> None:
        entry = message.nested_type.add(name=f"{field.name.capitalize()}Entry")
        entry.options.map_entry = True
        entry.field.add(name="key", number=1, label=_Field.LABEL_OPTIONAL, type=_Field.TYPE_STRING)
        self._set_type(entry.field.add(name="value", number=2, label=_Field.LABEL_OPTIONAL), own, word)
        field.label, field.type, field.type_name = _Field.LABEL_REPEATED, _Field.TYPE_MESSAGE, f"{own}.{entry.name}"

    def classes(self) -> SimpleNamespace:
        """Return the class of each message that is not within another, by its name."""
        pool = descriptor_pool.DescriptorPool()
        pool.AddSerializedFile(self.make_file().SerializeToString())
        names = [name for name in (line.partition(":")[0] for line in self._lines) if "." not in name]
        found = {
            name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{self._package}.{name}"))
            for name in names
        }
        return SimpleNamespace(**found)
