"""The files of `examples/serve`: their options, ports and addresses are the server's, and their formats are valid."""

import argparse
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("starlette", reason="the extra 'serve' is missing")
pytest.importorskip("prometheus_client", reason="the extra 'serve' is missing")

from torchlite.serve._command import add_parser, settings_of
from torchlite.serve._guard import OPEN_PATHS
from torchlite.serve._settings import PREFIX, make_settings, option_fields

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "examples" / "serve"
FILES = sorted(path.name for path in FOLDER.iterdir() if path.is_file())


def text_of(name):
    return (FOLDER / name).read_text()


def commands_of(name):
    """The words after `torchlite serve` of each command in a file."""
    found = []
    for line in text_of(name).splitlines():
        words = re.match(r"\s*(?:args|command): (\[.*\])|CMD (\[.*\])|# +torchlite serve (.*)", line)
        if words and words[3]:
            found.append(shlex.split(words[3]))
        elif words:
            found.append(json.loads(words[1] or words[2]))
    return found


def settings_with(words, environment, monkeypatch):
    for name in list(os.environ):
        if name.startswith(PREFIX):
            monkeypatch.delenv(name)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    parser = argparse.ArgumentParser()
    add_parser(parser.add_subparsers())
    return settings_of(parser.parse_args(["serve", *words]))


def environment_of(name):
    """The variables of the server that a file sets."""
    text = text_of(name)
    pairs = re.findall(rf"({PREFIX}\w+)[=:] ?([^\s\\]+)", re.sub(r"^\s*#.*$", "", text, flags=re.M))
    pairs += re.findall(rf"name: ({PREFIX}\w+)\n\s*value: (\S+)", text)
    return dict(pairs)


def test_the_folder_has_no_other_files():
    assert FILES == ["Dockerfile", "compose.yaml", "kserve.yaml", "kubernetes.yaml", "nginx.conf"]


@pytest.mark.parametrize("name", FILES)
def test_commands_and_variables_are_the_servers(name, monkeypatch):
    commands = commands_of(name)
    assert len(commands) == {"kserve.yaml": 2, "nginx.conf": 2}.get(name, 1)
    environment = environment_of("Dockerfile") | environment_of(name)
    assert environment
    if name == "Dockerfile":
        with pytest.raises(SystemExit):  # of a server that others reach without a token; the message says so
            try:
                settings_with(commands[0], environment, monkeypatch)
            except Exception as error:
                raise SystemExit(str(error))
        environment |= {f"{PREFIX}PUBLIC": "1"}
    for words in commands:
        settings = settings_with(words, environment, monkeypatch)
        assert settings.host == "0.0.0.0" and settings.models


def test_variables_are_known():
    names = {name for file in FILES for name in environment_of(file)}
    known = {PREFIX + one.name.upper() for one in option_fields()}
    assert names <= known and len(names) == 2
    assert make_settings(["m"], {}, None, environment_of("Dockerfile") | {f"{PREFIX}TOKEN": "x"}).host == "0.0.0.0"


@pytest.mark.parametrize("name", ["Dockerfile", "kserve.yaml", "kubernetes.yaml"])
def test_probes_ask_what_needs_no_token(name):
    paths = re.findall(r"path: (/v2\S+)|127\.0\.0\.1:\d+(/[\w/]+)", text_of(name))
    found = {one or other for one, other in paths}
    assert found and found <= set(OPEN_PATHS)


def test_ports_are_the_servers(monkeypatch):
    defaults = make_settings(["m"], {}, None, {})
    both = [str(defaults.port), str(defaults.grpc_port)]
    assert re.findall(r"^EXPOSE (\d+) (\d+)", text_of("Dockerfile"), re.M) == [tuple(both)]
    assert re.findall(r"127\.0\.0\.1:(\d+)/v2", text_of("Dockerfile")) == both[:1]
    assert re.findall(r"containerPort: (\d+)", text_of("kubernetes.yaml")) == both
    assert re.findall(r'"127\.0\.0\.1:(\d+):\1"', text_of("compose.yaml")) == both
    kserve = [settings_with(words, {}, monkeypatch).port for words in commands_of("kserve.yaml")]
    assert set(re.findall(r"[pP]ort: \"?(\d+)", text_of("kserve.yaml"))) == {str(port) for port in kserve} == {"8080"}
    nginx = [settings_with(words, {f"{PREFIX}TOKEN_FILE": ""}, monkeypatch).port for words in commands_of("nginx.conf")]
    assert re.findall(r"server 127\.0\.0\.1:(\d+)", text_of("nginx.conf")) == [str(port) for port in nginx]


def test_the_end_has_time(monkeypatch):
    settings = settings_with(commands_of("kubernetes.yaml")[0], {f"{PREFIX}TOKEN": "x"}, monkeypatch)
    text = text_of("kubernetes.yaml")
    grace = int(re.search(r"terminationGracePeriodSeconds: (\d+)", text)[1])
    before = int(re.search(r"sleep:\s+seconds: (\d+)", text)[1])
    assert grace > before + settings.drain + settings.drain_delay
    assert int(re.search(r"stop_grace_period: (\d+)s", text_of("compose.yaml"))[1]) > settings.drain
    assert int(re.search(r"proxy_read_timeout (\d+)s", text_of("nginx.conf"))[1]) > settings.timeout
    assert float(re.search(r"client_max_body_size (\d+)m", text_of("nginx.conf"))[1]) == settings.max_body_mb


def kubernetes_objects(name):
    yaml = pytest.importorskip("yaml", reason="PyYAML is missing (tox -e deployment)")
    return list(yaml.safe_load_all(text_of(name)))


def test_the_objects_of_kubernetes_are_of_its_schemas():
    validator = pytest.importorskip("kubernetes_validate", reason="kubernetes-validate is missing (tox -e deployment)")
    objects = kubernetes_objects("kubernetes.yaml")
    assert [one["kind"] for one in objects] == [
        "Deployment", "Service", "HorizontalPodAutoscaler", "PodDisruptionBudget"
    ]  # fmt: skip
    for one in objects:
        validator.validate(one, validator.latest_version(), strict=True)
    wrong = json.loads(json.dumps(objects[0]))
    wrong["spec"]["template"]["spec"]["containers"][0]["ready"] = {}
    with pytest.raises(validator.ValidationError):
        validator.validate(wrong, validator.latest_version(), strict=True)


def test_the_containers_of_kserve_are_those_of_kubernetes():
    """KServe's own fields are those of its definitions; its containers and volumes are Kubernetes'."""
    validator = pytest.importorskip("kubernetes_validate", reason="kubernetes-validate is missing (tox -e deployment)")
    runtime, of_file, of_image = kubernetes_objects("kserve.yaml")
    assert of_file["spec"]["predictor"]["model"]["runtime"] == runtime["metadata"]["name"]
    formats = {one["name"] for one in runtime["spec"]["supportedModelFormats"]}
    assert of_file["spec"]["predictor"]["model"]["modelFormat"]["name"] in formats
    for spec in (runtime["spec"], of_image["spec"]["predictor"]):
        pod = {key: spec[key] for key in ("containers", "volumes") if key in spec}
        made = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": pod}
        validator.validate(made, validator.latest_version(), strict=True)
        assert [one["name"] for one in spec["containers"]] == ["kserve-container"]


def test_the_dockerfile_has_no_complaints():
    hadolint = shutil.which("hadolint", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if hadolint is None:
        pytest.skip("hadolint is missing (tox -e deployment)")
    done = subprocess.run([hadolint, FOLDER / "Dockerfile"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


# -- the Dockerfile's steps ----------------------------------------------------------------


def instructions():
    """The instructions of the Dockerfile with their texts, comments left out and lines joined."""
    lines = [line for line in text_of("Dockerfile").splitlines() if not line.startswith("#")]
    joined = re.sub(r"\s*\\\n\s*", " ", "\n".join(lines))
    return [tuple(line.split(" ", 1)) for line in joined.splitlines() if line]


def test_the_image_is_small_and_safe():
    steps = instructions()
    last = [place for place, (word, _) in enumerate(steps) if word == "FROM"][-1]
    assert len([word for word, _ in steps if word == "FROM"]) == 2
    assert all(word != "RUN" for word, _ in steps[last:]), "nothing is installed in the image that runs"
    assert ("USER", "10001:10001") in steps[last:]
    assert dict(steps)["ENTRYPOINT"] == '["torchlite", "serve"]', "no shell stands between a signal and the server"


@pytest.mark.night
@pytest.mark.skipif(os.name != "posix", reason="commands of POSIX")
def test_the_steps_of_the_dockerfile(tmp_path, onnx_file):
    """Without a container, in folders below `tmp_path`: the server starts, is healthy, and ends at SIGTERM."""
    place = {path: f"{tmp_path}{path}" for path in ("/opt/torchlite", "/src", "/tmp/cache")}

    def here(text):
        return re.sub("|".join(place), lambda found: place[found[0]], text)

    environment = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/")}
    environment |= {key: value for key, value in os.environ.items() if key.startswith("PIP_")}
    folder, entry, health = tmp_path, [], []
    for word, text in instructions():
        if word == "WORKDIR":
            folder = Path(here(text) if text != "/tmp" else tmp_path)
            folder.mkdir(parents=True, exist_ok=True)
        elif word == "COPY" and not text.startswith("--from"):
            *sources, target = text.split()
            for source in sources:
                goal = folder / target / ("" if (ROOT / source).is_dir() else source)
                copy = shutil.copytree if (ROOT / source).is_dir() else shutil.copy
                copy(ROOT / source, goal)
        elif word == "RUN":
            text = here(text).replace("python -m venv", f"{sys.executable} -m venv")
            subprocess.run(["sh", "-ec", text], cwd=folder, env=environment, check=True)
        elif word == "ENV":
            pairs = dict(pair.split("=", 1) for pair in shlex.split(here(text)))
            environment |= {key: value.replace("$PATH", environment["PATH"]) for key, value in pairs.items()}
        elif word in ("ENTRYPOINT", "CMD"):
            entry += json.loads(text)
        elif word == "HEALTHCHECK":
            health = json.loads(text[text.index("CMD ") + 4 :])
    models = tmp_path / "models"
    models.mkdir()
    shutil.copy(onnx_file, models)
    command = [word.replace("/models", str(models)) for word in entry] + ["--port", "0", "--grpc-port", "0"]
    environment[f"{PREFIX}TOKEN"] = "secret"
    server = subprocess.Popen(command, env=environment, cwd=folder, stderr=subprocess.PIPE, text=True)
    try:
        port = next(found[1] for line in server.stderr if (found := re.search(r"ready: http://\S+?:(\d+)", line)))
        check = [word.replace(":8000/", f":{port}/") for word in health]
        assert subprocess.run(check, env=environment).returncode == 0
        server.send_signal(signal.SIGTERM)
        server.stderr.read()
        assert server.wait(60) == 0
        assert subprocess.run(check, env=environment, capture_output=True).returncode == 1
    finally:
        server.kill()
        server.wait()
        server.stderr.close()
    assert not list((tmp_path / "opt/torchlite/bin").glob("pip*"))
