"""`python -m torchlite completion`: prints a script that completes the commands and options in a shell."""

from __future__ import annotations

import argparse
import shlex
from typing import Any

from .command_line import Parser

SHELLS = ("bash", "zsh", "fish")
_DESCRIPTION = """\
Prints a script that completes torchlite's commands and options in a shell. Load it in the shell's start file.
"""
_EPILOG = """\
examples:
  eval "$(torchlite completion bash)"                                     in ~/.bashrc
  eval "$(torchlite completion zsh)"                                      in ~/.zshrc, after compinit
  torchlite completion fish > ~/.config/fish/completions/torchlite.fish   once
"""

_BASH = """\
_torchlite() {{
    local word="${{COMP_WORDS[COMP_CWORD]}}" words=""
    if [ "$COMP_CWORD" -eq 1 ]; then
        words="{commands}"
    else
        case "${{COMP_WORDS[1]}}" in
{cases}
        esac
    fi
    COMPREPLY=($(compgen -W "$words" -- "$word"))
    if [ "$COMP_CWORD" -gt 1 ] && [ "${{#COMPREPLY[@]}}" -eq 0 ]; then
        COMPREPLY=($(compgen -f -- "$word"))
    fi
}}
complete -o filenames -F _torchlite torchlite
"""

_ZSH = """\
_torchlite() {{
    local -a words_here
    if (( CURRENT == 2 )); then
        words_here=(
{commands}
        )
        _describe command words_here
        return
    fi
    case "${{words[2]}}" in
{cases}
    esac
    if [[ "$PREFIX" == -* || ${{#words_here}} -gt 0 && "${{words_here[1]}}" != -* ]]; then
        _describe argument words_here
    else
        _files
    fi
}}
compdef _torchlite torchlite
"""


def add_parser(commands: Any) -> None:
    """Add the command's arguments."""
    parser = commands.add_parser(
        "completion", help="print a script that completes commands and options", description=_DESCRIPTION,
        epilog=_EPILOG,
    )  # fmt: skip
    parser.add_argument("shell", choices=SHELLS, help="bash, zsh or fish")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run the command; return the exit status."""
    print({"bash": bash_script, "zsh": zsh_script, "fish": fish_script}[options.shell](options.program), end="")
    return 0


def list_commands(parser: Parser) -> dict[str, tuple[str, dict[str, str]]]:
    """Return the help of each command, and the help of each of its options and of each word that an argument may be."""
    subparsers = next(a for a in parser._actions if isinstance(a, argparse._SubParsersAction))
    helps = {action.dest: action.help or "" for action in subparsers._choices_actions}
    found = {}
    for name, command in subparsers.choices.items():
        found[name] = (helps[name], _list_words(command))
    found["show"][1]["op"] = "an op, by its name"
    return found


def _list_words(command: Any) -> dict[str, str]:
    """Return the help of a command's options and words, and then of those of its subcommands."""
    words: dict[str, str] = {}
    for action in command._actions:
        text = "" if action.help in (None, argparse.SUPPRESS) else command._get_formatter()._expand_help(action)
        if isinstance(action, argparse._SubParsersAction):
            words |= {choice.dest: choice.help or "" for choice in action._choices_actions}
            for subcommand in action.choices.values():
                words = _list_words(subcommand) | words
        elif action.help != argparse.SUPPRESS:
            names = action.option_strings or [str(choice) for choice in action.choices or ()]
            words |= dict.fromkeys(names, text)
    return words


def bash_script(parser: Parser) -> str:
    """Return the script for bash."""
    commands = list_commands(parser)
    cases = [f'        {name}) words="{" ".join(words)}" ;;' for name, (_, words) in commands.items()]
    return _BASH.format(commands=" ".join([*commands, "--help", "--version"]), cases="\n".join(cases))


def zsh_script(parser: Parser) -> str:
    """Return the script for zsh."""
    commands = list_commands(parser)

    def entries(words: dict[str, str], indent: str) -> str:
        return "\n".join(f"{indent}{shlex.quote(f'{word}:{text}')}" for word, text in words.items())

    cases = [
        f"        {name})\n            words_here=(\n{entries(words, ' ' * 16)}\n            ) ;;"
        for name, (_, words) in commands.items()
    ]
    helps = {name: text for name, (text, _) in commands.items()}
    helps |= {"--help": "explain the commands", "--version": "print the version"}
    return _ZSH.format(commands=entries(helps, " " * 12), cases="\n".join(cases))


def fish_script(parser: Parser) -> str:
    """Return the script for fish."""
    lines = ["complete -c torchlite -n __fish_use_subcommand -f"]
    lines += [
        f"complete -c torchlite -n __fish_use_subcommand -l {word} -d {_quote(text)}"
        for word, text in (("help", "explain the commands"), ("version", "print the version"))
    ]
    for name, (text, words) in list_commands(parser).items():
        lines.append(f"complete -c torchlite -n __fish_use_subcommand -a {name} -d {_quote(text)}")
        for word, about in words.items():
            kind = f"-l {word[2:]}" if word.startswith("--") else f"-s {word[1:]}" if word[0] == "-" else f"-a {word}"
            condition = _quote(f"__fish_seen_subcommand_from {name}")
            lines.append(f"complete -c torchlite -n {condition} {kind} -d {_quote(about)}")
    return "\n".join(lines) + "\n"


def _quote(text: str) -> str:
    """Quote a word for fish."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
