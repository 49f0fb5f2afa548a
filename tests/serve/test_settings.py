"""Options by flags, environment and file."""

import pytest

from torchlite.serve import Settings, _command
from torchlite.serve._settings import make_settings, option_fields


def test_flags_go_before_the_environment_and_that_before_the_file(tmp_path):
    path = tmp_path / "serve.toml"
    path.write_text('models = ["a.onnx"]\nport = 1\nthreads = 3\ntimeout = 5\n[model.a]\nmax_batch = 4\n')
    found = make_settings([], {"port": 3}, str(path), {"TORCHLITE_SERVE_PORT": "2", "TORCHLITE_SERVE_DRAIN": "7"})
    assert (found.port, found.drain, found.threads, found.timeout) == (3, 7.0, 3, 5.0)
    assert found.models == ("a.onnx",) and found.tables == {"a": {"max_batch": 4}}
    assert make_settings(["b.onnx"], {}, str(path), {}).models == ("b.onnx",)


def test_each_option_can_be_a_variable():
    words = {int: "9", float: "9", str: "9", bool: "1"}
    for one in option_fields():
        if one.name in ("host", "tls_cert", "tls_key"):
            continue
        found = make_settings([], {}, None, {f"TORCHLITE_SERVE_{one.name.upper()}": words[type(one.default)]})
        assert getattr(found, one.name) == type(one.default)(words[type(one.default)])


@pytest.mark.parametrize(
    ("environment", "error"),
    [
        ({"TORCHLITE_SERVE_PORT": "x"}, "'x' is no whole number"),
        ({"TORCHLITE_SERVE_TIMEOUT": "x"}, "'x' is no number"),
        ({"TORCHLITE_SERVE_PUBLIC": "maybe"}, "wanted is 1 or 0"),
        ({"TORCHLITE_SERVE_PROT": "1"}, "unknown variable TORCHLITE_SERVE_PROT"),
        ({"TORCHLITE_SERVE_THREADS": "0"}, "0 is not at least 1"),
        ({"TORCHLITE_SERVE_TIMEOUT": "nan"}, "is not at least"),
        ({"TORCHLITE_SERVE_PORT": "99999"}, "at most 65535"),
        ({"TORCHLITE_SERVE_TLS_CERT": "a"}, "given together"),
        ({"TORCHLITE_SERVE_TOKEN": "a", "TORCHLITE_SERVE_TOKEN_FILE": "b"}, "not both"),
        ({"TORCHLITE_SERVE_HOST": "0.0.0.0"}, "reached from other machines"),
    ],
)
def test_wrong_variables(environment, error):
    with pytest.raises(ValueError, match=error):
        make_settings([], {}, None, environment)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("port = '1'", "port must be a whole number"),
        ("prot = 1", "unknown key 'prot'"),
        ("models = 'a'", "unknown key 'models'"),
        ("model = 1", "unknown key 'model'"),
        ("port =", "serve.toml"),
    ],
)
def test_wrong_files(tmp_path, text, error):
    path = tmp_path / "serve.toml"
    path.write_text(text)
    with pytest.raises(ValueError, match=error):
        make_settings([], {}, str(path), {})


def test_beyond_this_machine_it_takes_a_token_or_a_word(tmp_path):
    assert Settings(host="0.0.0.0", token="t").read_token() == "t"
    assert Settings(host="0.0.0.0", public=True).read_token() == ""
    (tmp_path / "token").write_text(" secret\n")
    assert Settings(host="::", token_file=str(tmp_path / "token")).read_token() == "secret"
    (tmp_path / "token").write_text("\n")
    with pytest.raises(ValueError, match="holds no token"):
        Settings(token_file=str(tmp_path / "token")).read_token()


@pytest.mark.parametrize(
    ("words", "status", "error"),
    [
        ([], 2, "name a model"),
        (["a.onnx", "--threads", "0"], 2, "0 is not at least 1"),
        (["a.onnx", "--workers", "-1"], 2, "-1 is not at least 0"),
        (["a.onnx", "--workers", "2", "--threads", "2"], 2, "give workers or threads"),
        (["a.onnx", "--worker-timeout", "2"], 2, "give workers too"),
        (["a.onnx", "--port", "x"], 2, "invalid int value"),
        (["a.onnx", "--host", "0.0.0.0"], 2, "reached from other machines"),
        (["a.onnx", "--device", "nosuch"], 2, "there is no device 'nosuch'"),
        (["--config", "/nonexistent.toml"], 1, "No such file"),
    ],
)
def test_wrong_arguments_of_the_command(words, status, error, capsys):
    from torchlite.__main__ import main

    try:
        found = main(["serve", *words])
    except SystemExit as ended:
        found = ended.code
    assert found == status and error in capsys.readouterr().err


def test_flags_reach_the_settings():
    from torchlite.__main__ import make_parser

    options = make_parser().parse_args(["serve", "a.onnx", "--max-batch", "4", "--no-management", "--delay-ms", "2"])
    found = _command.settings_of(options)
    assert (found.max_batch, found.management, found.delay_ms, found.models) == (4, False, 2.0, ("a.onnx",))
    defaults = found.model_defaults()
    assert (defaults.max_batch, defaults.delay_ms) == (4, 2.0)
