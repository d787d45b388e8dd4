import pytest

import townhall
from townhall.errors import InputError
from townhall.tasks.access import task
from townhall.tasks.base import TASKS, Task

NAMES = ["arithmetic", "biography", "chess-move", "chess-validity", "gsm8k", "mmlu", "normad"]


def test_townhall_task_is_the_same_function():
    assert townhall.task is task


@pytest.mark.parametrize("name", NAMES)
def test_tasks_are_found_by_name(name):
    found = task(name)
    assert isinstance(found, Task)
    assert found.name == name
    assert found.summary


@pytest.mark.parametrize("name", NAMES)
def test_demonstrations_are_whole(name):
    for demonstration in task(name).demonstrations():
        assert demonstration.answer != demonstration.mistaken_answer
        assert len({persona.name for persona in demonstration.personas}) >= 3


@pytest.mark.parametrize("name", NAMES)
def test_an_unknown_option_lists_the_tasks_own(name):
    with pytest.raises(InputError, match=f"task '{name}' has no option 'colour'. Its options: "):
        task(name, colour="red")


@pytest.mark.parametrize("name", NAMES)
def test_an_unknown_extraction_rule_is_an_error(name):
    found = task(name)
    with pytest.raises(InputError, match=r"no extraction rule 'guess'. Known: flexible"):
        found.extract("yes", None, "guess")


def test_an_unknown_task_gets_the_nearest_name():
    with pytest.raises(InputError, match=r"unknown task 'gsm8'. Did you mean 'gsm8k'?"):
        task("gsm8")


def test_all_tasks_register():
    assert set(NAMES) <= set(TASKS.names())
