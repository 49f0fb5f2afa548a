"""Which local variables a statement needs and binds."""

import ast

from torchlite._dynamo.name_analysis import Exits, FlowAnalysis

_TRY = """
try:
    a = f()
except ValueError as error:
    b = str(error)
"""


def test_a_handler_binds_and_deletes_its_name():
    statements = ast.parse(_TRY).body
    flow = FlowAnalysis({"a", "b", "error"})
    assert flow.live(statements, frozenset(), Exits()) == set()
    assert flow.bound_after(statements, frozenset(("a", "b", "error"))) == {"a", "b"}
    assert flow.live(statements, frozenset(("error",)), Exits()) == {"error"}
