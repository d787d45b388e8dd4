from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

import townhall as package
from townhall.cli.main import SECTIONS, cli, main
from townhall.errors import BudgetExceededError, InputError, RunError

COMMANDS = [name for section in SECTIONS.values() for name in section]


def test_help_lists_every_command_in_its_section(townhall):
    outcome = townhall("--help")
    assert outcome.code == 0
    for name, entry in {name: entry for section in SECTIONS.values() for name, entry in section.items()}.items():
        assert f"{name} " in outcome.out
        assert entry.help.split()[0] in outcome.out


def test_without_a_command_help_is_shown(townhall):
    outcome = townhall()
    assert outcome.code == 0
    assert "Usage: townhall" in outcome.out


def test_version_is_the_packages(townhall):
    outcome = townhall("--version")
    assert (outcome.code, outcome.out) == (0, f"townhall {package.__version__}\n")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_a_help_page_with_an_example(townhall, name):
    outcome = townhall(name, "--help")
    assert outcome.code == 0
    assert "Example" in outcome.out
    assert f"townhall {name}" in outcome.out.partition("Example")[2]


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["evaluate", "--help"], ["debate", "--help"]])
def test_help_imports_nothing_heavy(arguments):
    script = (
        "import sys\nfrom townhall.cli.main import main\n"
        f"code = main({arguments!r})\n"
        "heavy = {'dspy', 'rich', 'pydantic', 'numpy', 'yaml', 'optuna', 'datasets'} & set(sys.modules)\n"
        "print(code, sorted(heavy), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "0 []"


def test_unknown_command_gives_the_nearest(refused):
    assert "no command 'evalute'. Did you mean 'evaluate'?" in refused("evalute")


def test_unknown_option_gives_the_nearest(refused):
    assert "list has no option '--jsn'. Did you mean '--json'?" in refused("list", "tasks", "--jsn")


def test_value_that_is_no_choice_lists_the_choices(refused):
    text = refused("list", "models_")
    assert "'tasks', 'strategies', 'models', 'decisions'" in text


@pytest.fixture
def failing(monkeypatch):
    """Make `townhall list ...` raise."""

    def arrange(error):
        from townhall.cli import listing

        def fail(kind, as_json):
            raise error

        monkeypatch.setattr(listing, "print_list", fail)

    return arrange


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (InputError("x.jsonl, line 7: not JSON"), 2, "townhall: error: x.jsonl, line 7: not JSON\n"),
        (RunError("the server\nis gone"), 1, "townhall: error: the server is gone\n"),
        (BudgetExceededError("10 calls are used up"), 3, "townhall: 10 calls are used up\n"),
        (KeyboardInterrupt(), 130, "townhall: interrupted\n"),
        (PermissionError(13, "Permission denied", "/x/y"), 1, "townhall: error: /x/y: Permission denied\n"),
        (ZeroDivisionError("by\nzero"), 1, "townhall: error: ZeroDivisionError: by (TOWNHALL_DEBUG=1 shows where)\n"),
    ],
)
def test_errors_become_one_line_and_an_exit_code(townhall, failing, error, code, line):
    failing(error)
    outcome = townhall("list", "tasks")
    assert (outcome.code, outcome.err.lstrip()) == (code, line)  # a line feed ends the ^C that terminals show


def test_error_texts_from_others_cannot_steer_the_terminal(townhall, failing):
    failing(RunError("bad \x1b[31mserver\x1b[0m \x1b]0;title\x07 says \x9b2J no\u202e"))
    assert townhall("list", "tasks").err == "townhall: error: bad server says 2J no\n"


def test_debug_shows_the_traceback(townhall, failing, monkeypatch):
    failing(ZeroDivisionError("by zero"))
    monkeypatch.setenv("TOWNHALL_DEBUG", "1")
    assert "Traceback (most recent call last)" in townhall("list", "tasks").err


def test_other_libraries_are_silent_unless_verbose(townhall, monkeypatch):
    import logging
    import warnings

    from townhall.cli import listing

    def chatter(kind, as_json):
        warnings.warn("a library's warning", stacklevel=1)
        logging.getLogger("some.library").error("a library's log")

    monkeypatch.setattr(listing, "print_list", chatter)
    assert townhall("list", "tasks").err == ""
    assert not logging.getLogger("some.library").isEnabledFor(logging.NOTSET - 1)
    assert logging.getLogger("some.library").isEnabledFor(logging.ERROR)


def test_reader_that_leaves_early_is_no_error():
    # The writer's pipe is closed after the first line, as `| head -1` does.
    code = (
        "import sys\nfrom townhall.cli.main import main\nsys.exit(main(['generate', 'arithmetic', '--count', '20000']))"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert json.loads(process.stdout.readline())["question"]
    process.stdout.close()
    assert process.wait(timeout=60) == 1
    assert process.stderr.read() == ""


def test_registered_command_names_match_their_modules():
    with cli.make_context("townhall", ["--help"], resilient_parsing=True) as context:
        for name in cli.list_commands(context):
            assert cli.get_command(context, name).name == name


def test_environment_of_the_console_script_is_the_main_function():
    from importlib.metadata import entry_points

    found = [entry for entry in entry_points(group="console_scripts") if entry.name == "townhall"]
    if not found:
        pytest.skip("townhall is not installed here")
    assert found[0].load() is main


def test_no_colour_codes_in_a_pipe(townhall):
    assert "\x1b" not in townhall("list", "strategies").out


def test_piped_pages_follow_columns(townhall, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    assert max(map(len, townhall("list", "strategies").out.splitlines())) <= 60
    assert os.environ["COLUMNS"] == "60"
