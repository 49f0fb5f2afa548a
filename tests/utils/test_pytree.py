"""torch.utils._pytree: results, and errors for mismatched structures, are PyTorch's."""

import copy
import dataclasses
import enum
import pickle
from collections import OrderedDict, UserDict, defaultdict, deque, namedtuple
from time import gmtime

import pytest

import torchlite as torch
from torchlite.utils import _pytree as pytree

Point = namedtuple("Point", ["x", "y"])


class Colour(enum.Enum):
    RED = 1


@pytest.fixture(autouse=True)
def registered():
    """Registrations go with the test."""
    tables = pytree.SUPPORTED_NODES, pytree.SUPPORTED_SERIALIZED_TYPES, pytree.SERIALIZED_TYPE_TO_PYTHON_TYPE
    before = [dict(table) for table in tables]
    yield
    for table, old in zip(tables, before, strict=True):
        table.clear()
        table.update(old)


TREES = [
    (1, [1]), (None, [None]), ([], []), ((), []), ({}, []), ((1, [2, (3,)]), [1, 2, 3]), ({"b": 1, "a": [2]}, [1, 2]),
    (Point(1, {"z": 2}), [1, 2]), (OrderedDict(x=1), [1]), (defaultdict(list, {"q": [1]}), [1]),
    (deque([1, (2,)], maxlen=3), [1, 2]), (torch.Size([2, 3]), [2, 3]), ([None, "text"], [None, "text"]),
]  # fmt: skip


@pytest.mark.parametrize(("tree", "want"), TREES)
def test_round_trip(tree, want):
    leaves, spec = pytree.tree_flatten(tree)
    assert leaves == want == pytree.tree_leaves(tree) == list(pytree.tree_iter(tree))
    again = pytree.tree_unflatten(iter(leaves), spec)
    assert again == tree and type(again) is type(tree)
    assert spec == pytree.tree_structure(tree) and hash(spec) == hash(pytree.tree_structure(tree))
    assert spec.num_leaves == len(leaves) and pickle.loads(pickle.dumps(spec)) == spec
    pairs, other = pytree.tree_flatten_with_path(tree)
    assert other == spec and [leaf for _, leaf in pairs] == leaves
    assert all(pytree.key_get(tree, path) == leaf for path, leaf in pairs)


def test_leaves():
    assert pytree.tree_leaves(gmtime(0)) == [gmtime(0)]
    own = type("Own", (list,), {})([1, 2])
    assert pytree.tree_leaves(own) == [own]
    assert pytree.tree_leaves([[1], 2], is_leaf=lambda x: x == [1]) == [[1], 2]
    assert pytree.tree_is_leaf(1) and not pytree.tree_is_leaf([]) and pytree.tree_is_leaf([], lambda x: True)


def test_specs():
    spec = pytree.tree_structure([1, (2, 3)])
    assert repr(spec) == "TreeSpec(list, None, [*,\n  TreeSpec(tuple, None, [*,\n    *])])"
    assert (spec.num_nodes, spec.num_leaves, spec.num_children, spec.type, spec.context) == (5, 3, 2, list, None)
    assert not spec.is_leaf() and spec.child(0).is_leaf() and spec.children()[1] == spec.child(1) and spec != 3
    assert spec.unflatten([1, 2, 3]) == [1, (2, 3)] and pytree.treespec_pprint(spec) == "[*, (*, *)]"
    assert repr(pytree.tree_structure({"a": Point(1, 2)})).startswith("TreeSpec(dict, ['a'], [TreeSpec(namedtuple, <cl")
    assert pytree.LeafSpec() == pytree.tree_structure(0) and repr(pytree.LeafSpec()) == "*"
    assert pytree.TreeSpec(dict, ["a"], [pytree.LeafSpec()]) == pytree.treespec_dict(a=pytree.treespec_leaf())
    assert pytree.treespec_tuple([spec]) == pytree.tree_structure(([1, (2, 3)],))
    with pytest.warns(FutureWarning, match="children_specs` is deprecated"):
        assert spec.children_specs == spec.children()
    with pytest.warns(FutureWarning, match="is deprecated, use `isinstance"):
        assert isinstance(pytree.tree_structure(1), pytree.LeafSpec)
    with pytest.raises(dataclasses.FrozenInstanceError):
        spec.type = tuple


MISMATCHES = [
    ((1, 2), (1, 2, 3), "Node arity mismatch; expected 2, but got 3."),
    ((1, 2), [1, 2], "Node type mismatch; expected <class 'tuple'>, but got <class 'list'>."),
    ({"a": 1}, {"b": 1}, "Node keys mismatch; missing key(s): {'a'}; extra key(s): {'b'}."),
    ([1], 1, "Node type mismatch; expected <class 'list'>, but got <class 'int'>."),
    ({"a": 1}, {"a": 1, "b": 3}, "Node arity mismatch; expected 1, but got 2."),
]


@pytest.mark.parametrize(("tree", "other", "words"), MISMATCHES)
def test_structures_that_differ(tree, other, words):
    with pytest.raises(ValueError) as caught:
        pytree.tree_map(lambda x, y: x, tree, other)
    assert str(caught.value) == words


def test_structures_that_fit():
    add = lambda x, y: (x, y)
    assert pytree.tree_map(add, {"a": 1, "b": 2}, {"b": 1, "a": 2}) == {"a": (1, 2), "b": (2, 1)}
    assert pytree.tree_map(add, {"a": 1}, OrderedDict(a=3)) == {"a": (1, 3)}
    assert pytree.tree_map(add, deque([1], maxlen=2), deque([1])) == deque([(1, 1)], maxlen=2)
    assert pytree.tree_map(add, 1, [1]) == (1, [1])
    other = namedtuple("Other", ["x", "y"])
    with pytest.raises(ValueError, match="Node context mismatch for node type"):
        pytree.tree_map(add, Point(1, 2), other(1, 2))
    with pytest.raises(ValueError, match="`leaves` has length 1 but the spec refers to a pytree that holds 2 items"):
        pytree.tree_unflatten([1], pytree.tree_structure((1, 2)))
    with pytest.raises(TypeError, match="Expected `treespec` to be an instance of PyTreeSpec but got item of type"):
        pytree.tree_unflatten([1], (1,))


@pytest.mark.parametrize(
    ("tree", "to", "want"),
    [
        (1, (), []), ((1,), (0,), [1]), ([1], (0,), None), ((1, 2, 3), (0, 0), None), (1, [0, (0, 0)], [1, 1, 1]),
        ({"a": 1, "b": 2}, {"a": 0, "c": 0}, None), (([1, 2, 3], 4), ([0, [0, 0], 0], [0, 0]), [1, 2, 2, 3, 4, 4]),
    ],
)  # fmt: skip
def test_broadcasting(tree, to, want):
    assert pytree._broadcast_to_and_flatten(tree, pytree.tree_structure(to)) == want


def test_maps_and_questions():
    assert pytree.tree_map_only(int, lambda x: x + 2, [0, "a"]) == [2, "a"]
    assert pytree.tree_map_only(int | str, lambda x: x * 2, [1, "a", 2.5]) == [2, "aa", 2.5]
    assert pytree.tree_map_only(lambda x: x == 0, lambda x: x + 2, [0, 1]) == [2, 1]
    with pytest.raises(TypeError, match="Argument must be a type, a tuple of types, or a callable."):
        pytree.tree_map_only(3, abs, [1])
    seen = []
    tree = [1, "a", (2,)]
    assert pytree.tree_map_(seen.append, tree) is tree and seen == [1, "a", 2]
    assert pytree.tree_map_only_(str, seen.append, tree) is tree and seen[3:] == ["a"]
    assert pytree.tree_all(bool, [1, 3]) and not pytree.tree_any(bool, [0, ()])
    assert pytree.tree_all_only(int, bool, ["", 1]) and not pytree.tree_any_only(int, bool, ["a", 0])
    assert pytree.arg_tree_leaves(1, [2], a={"b": 3}) == [1, 2, 3]


def test_paths():
    tree = (["hello", {"foo": [3], "bar": Point("baz", 10)}],)
    pairs = pytree.tree_leaves_with_path(tree)
    assert [f"{pytree.keystr(path)}: {leaf}" for path, leaf in pairs] == [
        "[0][0]: hello", "[0][1]['foo'][0]: 3", "[0][1]['bar'].x: baz", "[0][1]['bar'].y: 10"
    ]  # fmt: skip
    assert repr(pairs[2][0][2:]) == "(MappingKey(key='bar'), GetAttrKey(name='x'))"
    assert pytree.tree_map_with_path(lambda path, x, y: (pytree.keystr(path), x, y), [1], [2]) == [("[0]", 1, 2)]


def test_classes_of_programs():
    class Own(UserDict):
        pass

    own = Own(a=1, b=2)
    assert pytree.tree_leaves(own) == [own]
    take, make = lambda d: (list(d.values()), list(d)), lambda items, keys: Own(zip(keys, items, strict=True))
    pytree.register_pytree_node(Own, take, make)
    assert pytree.tree_map(lambda x: x + 1, own) == Own(a=2, b=3)
    with pytest.raises(ValueError, match="is already registered as pytree node"):
        pytree.register_pytree_node(Own, take, make)
    with pytest.raises(ValueError, match="Did not find a flatten_with_keys_fn for type"):
        pytree.tree_leaves_with_path(own)
    with pytest.raises(NotImplementedError, match="No registered serialization name for"):
        pytree.treespec_dumps(pytree.tree_structure(own))
    with pytest.raises(ValueError, match="Both to_dumpable_context and from_dumpable_context"):
        pytree.register_pytree_node(type("Other", (), {}), take, make, to_dumpable_context=str)
    with (
        pytest.warns(FutureWarning, match="_register_pytree_node` is deprecated"),
        pytest.warns(UserWarning, match="already registered"),
    ):
        pytree._register_pytree_node(Own, take, make)
    pytree._deregister_pytree_node(Own)
    assert pytree.tree_leaves(own) == [own]


def test_dataclasses_and_constants():
    @dataclasses.dataclass
    class Pair:
        a: int
        b: object = None

    pytree.register_dataclass(Pair)
    assert pytree.tree_map(lambda x: x + 1, Pair(1, 2)) == Pair(2, 3)
    assert pytree.tree_leaves(Pair(1)) == [1] and pytree.tree_map(str, Pair(1)) == Pair("1")
    assert [pytree.keystr(path) for path, _ in pytree.tree_leaves_with_path(Pair(1, 2))] == [".a", ".b"]
    with pytest.raises(ValueError, match="Missing fields in `field_names`: {'b'}"):
        pytree.register_dataclass(dataclasses.make_dataclass("D", ["a", "b"]), field_names=["a"])

    @dataclasses.dataclass(frozen=True)
    class Fixed:
        a: int

    pytree.register_constant(Fixed)
    assert pytree.tree_leaves([Fixed(1), 2]) == [2] and pytree.is_constant_class(Fixed)
    assert pytree.tree_map(lambda x: x + 1, [Fixed(1), 2]) == [Fixed(1), 3]
    assert pytree.tree_structure(Fixed(1)) != pytree.tree_structure(Fixed(2))
    with pytest.raises(TypeError, match="non-default `__eq__`"):
        pytree.register_constant(type("Plain", (), {}))


LEAF = '{"type": null, "context": null, "children_spec": []}'
WRITTEN = [
    ([1], f'[1, {{"type": "builtins.list", "context": "null", "children_spec": [{LEAF}]}}]'),
    (deque([1], maxlen=3), f'[1, {{"type": "collections.deque", "context": "3", "children_spec": [{LEAF}]}}]'),
    (torch.Size([4]), f'[1, {{"type": "torch.Size", "context": "null", "children_spec": [{LEAF}]}}]'),
    (
        defaultdict(list, {"a": 1}),
        '[1, {"type": "collections.defaultdict", "context": {"default_factory_module": "builtins", '
        f'"default_factory_name": "list", "dict_context": ["a"]}}, "children_spec": [{LEAF}]}}]',
    ),
    (OrderedDict({1: 2}), f'[1, {{"type": "collections.OrderedDict", "context": "[1]", "children_spec": [{LEAF}]}}]'),
]


@pytest.mark.parametrize(("tree", "text"), WRITTEN)
def test_text(tree, text):
    spec = pytree.tree_structure(tree)
    assert pytree.treespec_dumps(spec) == text and pytree.treespec_loads(text) == spec


def test_text_of_named_tuples_and_enums():
    spec = pytree.tree_structure(Point(1, 2))
    with pytest.raises(NotImplementedError, match="we didn't register a serializated_type_name"):
        pytree.treespec_dumps(spec)
    pytree._register_namedtuple(Point, serialized_type_name="tests.Point")
    assert '"context": "tests.Point"' in pytree.treespec_dumps(spec)
    assert pytree.treespec_loads(pytree.treespec_dumps(spec)) == spec
    enums = pytree.tree_structure({Colour.RED: 1})
    assert pytree.treespec_loads(pytree.treespec_dumps(enums)) == enums


def test_text_that_cannot_be():
    for call, words in (
        (lambda: pytree.treespec_dumps(pytree.treespec_leaf(), 7), "Unknown protocol 7. Available protocols: [1]"),
        (lambda: pytree.treespec_loads("[9, {}]"), "Unknown protocol 9. Available protocols: [1]"),
    ):
        with pytest.raises(ValueError) as caught:
            call()
        assert str(caught.value) == words
    with pytest.raises(TypeError, match="Expected `treespec`"):
        pytree.treespec_dumps("x")
    with pytest.raises(NotImplementedError, match="Deserializing nope.X in pytree is not registered"):
        pytree.treespec_loads('[1, {"type": "nope.X", "context": "null", "children_spec": []}]')


def test_results_of_several_values_are_containers():
    found = torch.tensor([[1.0, 2.0]]).max(1)
    doubled = pytree.tree_map(lambda value: value * 2, {"found": found})["found"]
    assert type(doubled) is type(found) is torch.return_types.max
    assert doubled.values.tolist() == [4.0] and doubled.indices.tolist() == [2]
    leaves, spec = pytree.tree_flatten(found)
    assert len(leaves) == 2 and repr(spec) == "TreeSpec(max, None, [*,\n  *])"
    assert pytree.tree_unflatten([1, 2], spec).indices == 2
    assert [str(path[0]) for path, _ in pytree.tree_flatten_with_path(found)[0]] == ["[0]", "[1]"]


def test_results_of_several_values_are_pickled_as_they_are():
    for found in (torch.ones(2, 2).sort(), torch.linalg.slogdet(torch.eye(2)), torch.linalg.qr(torch.eye(2))):
        for again in (pickle.loads(pickle.dumps(found)), copy.copy(found), copy.deepcopy(found)):
            assert type(again) is type(found) and torch.equal(again[0], found[0])
    for kind in torch.return_types.all_return_types:
        assert pickle.loads(pickle.dumps(kind)) is kind


def test_containers_are_taken_apart_by_name():
    from collections import OrderedDict, defaultdict, deque

    import torchlite.utils._pytree as p

    assert p._dict_flatten({"a": 1, "b": 2}) == ([1, 2], ["a", "b"]) and p._dict_unflatten([1], ["a"]) == {"a": 1}
    assert p._dict_flatten_with_keys({"a": 1}) == ([(p.MappingKey("a"), 1)], ["a"])
    assert p._list_flatten_with_keys([1]) == ([(p.SequenceKey(0), 1)], None) and p._tuple_unflatten([1], None) == (1,)
    assert p._ordereddict_flatten(OrderedDict(a=1)) == p._odict_flatten(OrderedDict(a=1)) == ([1], ["a"])
    assert p._defaultdict_flatten(defaultdict(int, a=1)) == ([1], [int, ["a"]])
    assert p._deque_flatten(deque([1])) == ([1], None) and p._is_leaf(3)
