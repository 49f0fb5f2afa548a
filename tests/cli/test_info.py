"""`python -m torchlite info --json`."""

import json

from torchlite import __torchlite_version__
from torchlite.__main__ import main
from torchlite._cli import info


def test_json_has_the_documented_keys(capsys):
    assert main(["info", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert list(found) == [
        "torchlite",
        "python",
        "system",
        "packages",
        "devices",
        "cpu_kernels",
        "threads",
        "cache_folders",
    ]
    assert found["torchlite"]["version"] == __torchlite_version__ and found["packages"]["numpy"][0].isdigit()
    assert list(found["threads"]) == ["cores", "torchlite", "blas", "blas_threads", "onednn", "environment"]
    devices = {one["name"].partition(":")[0]: one for one in found["devices"]}
    assert {"cpu", "cuda", "opencl", "meta"} <= set(devices) and devices["cpu"]["status"] == "ready"
    assert {one["status"] for one in found["devices"]} <= {"ready", "absent", "left out"}
    assert all(set(one) == {"name", "path", "exists"} for one in found["cache_folders"])


def test_absent_packages_are_null(monkeypatch, capsys):
    monkeypatch.setattr(info, "_PACKAGES", ("numpy", "no-such-package"))
    assert info.collect()["packages"]["no-such-package"] is None
    assert "no-such-package                  not installed" in info.format_report()


def test_a_backend_that_fails_does_not_break_the_report(monkeypatch):
    def fail(name):
        raise OSError("the driver is broken")

    monkeypatch.setattr("torchlite._dispatch.backend_registry.backend_of", fail)
    assert set(map(tuple, info._unusable_devices().values())) == {("the driver is broken",)}
