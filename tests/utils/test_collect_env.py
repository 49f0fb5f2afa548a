"""The report of the environment: each fact by its own function, over commands that are played."""

from __future__ import annotations

import pytest

import torchlite as torch
from torchlite.utils import collect_env


def player(answers):
    """A function that runs commands: it answers those that begin with a key, and fails for others."""

    def run(command):
        found = next((text for start, text in answers.items() if command.startswith(start)), None)
        return (1, "", "not found") if found is None else (0, found, "")

    return run


@pytest.mark.parametrize(
    ("name", "command", "output", "result"),
    [
        ("get_gcc_version", "gcc", "gcc (Debian) 12.2.0\nCopyright", "(Debian) 12.2.0"),
        ("get_clang_version", "clang", "Debian clang version 19.1", "19.1"),
        ("get_cmake_version", "cmake", "cmake version 3.31\n", "version 3.31"),
        ("get_running_cuda_version", "nvcc", "release 12.4, V12.4.131\nBuild", "12.4.131"),
        ("get_nvidia_driver_version", "nvidia-smi", "| Driver Version: 570.1  CUDA Version: 12.8 |", "570.1"),
        (
            "get_gpu_info",
            "nvidia-smi -L",
            "GPU 0: H100 (UUID: GPU-1)\nGPU 1: L4 (UUID: GPU-2)",
            "GPU 0: H100\nGPU 1: L4",
        ),
        ("get_lsb_version", "lsb_release", "Description:\tDebian 12\nRelease:\t12", "Debian 12"),
        ("check_release_file", "cat", 'NAME="D"\nPRETTY_NAME="Debian 12"\n', "Debian 12"),
        ("get_mac_version", "sw_vers", "15.1", "15.1"),
        ("get_windows_version", "powershell", "Windows 11", "Windows 11"),
    ],
)
def test_facts(name, command, output, result, monkeypatch):
    monkeypatch.setattr(collect_env, "get_platform", lambda: "linux")
    function = getattr(collect_env, name)
    assert function(player({command: output})) == result
    assert function(player({})) is None


def test_system_by_platform(monkeypatch):
    monkeypatch.setattr(collect_env.platform, "machine", lambda: "arm64")
    monkeypatch.setattr(collect_env, "get_platform", lambda: "darwin")
    assert collect_env.get_os(player({"sw_vers": "15.1"})) == "macOS 15.1 (arm64)"
    assert collect_env.get_os(player({})) is None
    monkeypatch.setattr(collect_env, "get_platform", lambda: "linux")
    assert collect_env.get_os(player({"cat": 'PRETTY_NAME="Arch"'})) == "Arch (arm64)"
    assert collect_env.get_os(player({})) == "linux (arm64)"


def test_versions_of_system_packages():
    listed = player({"which dpkg": "/usr/bin/dpkg", "dpkg -l | grep -w libze1": "ii  libze1  1.17  amd64"})
    assert collect_env.get_linux_pkg_version(listed, "libze1") == "1.17"
    assert collect_env.get_linux_pkg_version(listed, "other") == "N/A"
    assert collect_env.get_linux_pkg_version(player({}), "libze1") == "N/A"


def test_packages():
    conda = player({"conda": "# packages in base\nnumpy 2.4\nzlib 1.3\nmagma 2.7"})
    assert collect_env.get_conda_packages(conda) == "numpy 2.4\nmagma 2.7"
    assert collect_env.get_conda_packages(conda, ["zlib"]) == "zlib 1.3"
    assert collect_env.get_conda_packages(player({})) is None
    assert "numpy==" in collect_env.get_pip_packages(collect_env.run)[1]


def test_report(monkeypatch):
    monkeypatch.setattr(collect_env, "run", player({"gcc": "gcc 14.2", "lscpu": "Model name: X"}))
    text = collect_env.get_pretty_env_info()
    assert f"PyTorch version: {torch.__version__}\n" in text
    assert "GCC version: 14.2\nClang version: Could not collect\n" in text
    assert "CPU:\nModel name: X\n" in text and "\n[pip3] numpy==" in text and text.endswith("[conda] Could not collect")
    assert [*collect_env.SystemEnv._fields][:3] == ["torch_version", "is_debug_build", "cuda_compiled_version"]
