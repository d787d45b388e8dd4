"""Export formats: what is in the files, and what is refused."""

from __future__ import annotations

import importlib.util
import json
import sys
from typing import Literal

import dspy
import jinja2
import pytest
import yaml
from pydantic import BaseModel, Field

import townhall
from townhall.errors import InputError
from townhall.models.server import SimulatedServer
from townhall.models.simulation import SimulatedBehaviour
from townhall.optimize.compile import compile
from townhall.optimize.export import export
from townhall.optimize.exporters.base import EXPORTERS
from townhall.optimize.exporters.promptfoo import nunjucks_literal
from townhall.optimize.single_prompt import as_single_prompt
from townhall.optimize.templates import escape, render, template
from townhall.programs.base import STRATEGIES
from townhall.programs.town_hall import TownHall


@pytest.fixture
def hall(small):
    return small("town-hall")


def load_file(path):
    spec = importlib.util.spec_from_file_location("exported_debate", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_all_seven_formats_are_registered():
    assert EXPORTERS.names() == ["dspy", "json-schema", "langchain", "markdown", "messages", "promptfoo", "python"]


@pytest.mark.parametrize("strategy", STRATEGIES.names())
@pytest.mark.parametrize("name", EXPORTERS.names())
def test_every_strategy_leaves_in_every_format(name, strategy, small, arithmetic, tmp_path):
    paths = export(small(strategy), tmp_path / "out", format=name, task=arithmetic)
    assert paths
    for path in paths:
        assert path.stat().st_size > 100


# -- placeholders ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text", ["{{question}}", "{{", "{{{", "{{{{", "}}", "{", "{{{question}}}", "a{{b}}c", "{{{{question}}", ""]
)
def test_literal_braces_in_prompts_are_never_taken_for_placeholders(text):
    program = TownHall(answer=str)
    program.argue.signature = program.argue.signature.with_instructions(f"before {text}{{{{persona}}}} after {text}")
    messages = render(template(program.argue), {"question": "Q?", "persona": "P"})
    assert f"before {text}{{{{persona}}}} after {text}" in messages[0]["content"]
    assert messages[-1]["content"].startswith("[[ ## question ## ]]\nQ?\n\n[[ ## persona ## ]]\nP\n")


def test_placeholders_in_values_are_not_filled_in_again():
    messages = render([{"role": "user", "content": "{{a}} {{b}} {{c}}"}], {"a": "{{b}}", "b": "{{{{"})
    assert messages[0]["content"] == "{{b}} {{{{ {{c}}"


def test_a_literal_is_read_back_from_its_escaped_form():
    for text in ("{{", "{{{", "x{{{{y", "{{a}}{{{a}}}"):
        assert render([{"role": "user", "content": escape(text) + "{{a}}"}], {"a": "1"})[0]["content"] == text + "1"


# -- formats --------------------------------------------------------------------------------------------------------


def test_dspys_state_is_read_by_dspy_itself(hall, tmp_path):
    hall.argue.signature = hall.argue.signature.with_instructions("Argue well.")
    export(hall, tmp_path, format="dspy")
    fresh = TownHall(answer=int)
    fresh.load(tmp_path / "program.json")
    assert fresh.argue.signature.instructions == "Argue well."
    assert len(fresh.argue.demos) == 1


def test_messages_name_inputs_and_carry_the_reply_schema(hall, tmp_path):
    export(hall, tmp_path / "hall.json", format="messages")
    data = json.loads((tmp_path / "hall.json").read_text())
    vote = data["roles"]["vote"]
    assert list(vote["inputs"]) == ["question", "candidates", "persona"]
    assert vote["schema"]["properties"]["choice"]["type"] == "integer"
    assert [message["role"] for message in vote["messages"]] == ["system", "user", "assistant", "user"]
    assert data["settings"]["personas"] == 2


def test_markdown_shows_every_role_and_how_it_was_tuned(hall, arithmetic, model_of, tmp_path):
    with dspy.context(lm=model_of(arithmetic, 1.0)):
        compiled = compile(hall, arithmetic, "bootstrap", train=arithmetic.split("train", limit=4))
    export(compiled, tmp_path / "page.md", format="markdown")
    page = (tmp_path / "page.md").read_text()
    for role in ("# identify", "# argue", "# rebut", "# vote"):
        assert f"\n{role}\n" in page
    assert "Prompts tuned with bootstrap" in page


def test_markdown_fences_stand_around_prompts_that_contain_fences(tmp_path):
    program = TownHall(answer=str)
    program.argue.signature = program.argue.signature.with_instructions("Answer in\n````\ncode\n````")
    export(program, tmp_path / "page.md", format="markdown")
    assert "\n`````text\n" in (tmp_path / "page.md").read_text()


def test_json_schemas_are_closed_objects_with_all_fields_required(hall, tmp_path):
    export(hall, tmp_path, format="json-schema")
    schemas = json.loads((tmp_path / "schemas.json").read_text())
    assert set(schemas) == {"identify", "argue", "rebut", "vote"}
    for schema in schemas.values():
        assert schema["additionalProperties"] is False
        assert schema["required"] == list(schema["properties"])


def test_langchain_templates_have_its_saved_form_and_render_to_the_same_messages(hall, tmp_path):
    """The form of `langchain_core.load.loads`; f-string templates are Python's own format strings."""
    export(hall, tmp_path, format="langchain")
    for name, predictor in hall.named_predictors():
        saved = json.loads((tmp_path / f"{name}.json").read_text())
        assert saved["id"] == ["langchain", "prompts", "chat", "ChatPromptTemplate"]
        inputs = dict.fromkeys(predictor.signature.input_fields, "{x} {{y}}")
        assert saved["kwargs"]["input_variables"] == list(inputs)
        kinds, texts = [], []
        for message in saved["kwargs"]["messages"]:
            prompt = message["kwargs"]["prompt"]["kwargs"]
            assert prompt["template_format"] == "f-string"
            kinds.append(message["id"][-1])
            texts.append(prompt["template"].format(**{key: inputs[key] for key in prompt["input_variables"]}))
        expected = render(template(predictor), inputs)
        assert texts == [message["content"] for message in expected]
        assert kinds[0] == "SystemMessagePromptTemplate"
        assert kinds[-1] == "HumanMessagePromptTemplate"


@pytest.mark.parametrize("text", ["{{x}}", "{%raw%}", "{# note #}", "{", "{{{", "a{", "{{ '{{' }}"])
def test_literal_braces_begin_no_tag_in_promptfoos_templates(text):
    """Nunjucks' tags are those of Jinja."""
    assert jinja2.Template(nunjucks_literal(text) + "{{question}}").render(question="Q") == text + "Q"


def test_promptfoo_gets_a_prompt_and_an_assertion_for_a_single_call(small, arithmetic, tmp_path):
    export(small("chain-of-thought"), tmp_path, format="promptfoo", task=arithmetic, model="some-model")
    config = yaml.safe_load((tmp_path / "promptfooconfig.yaml").read_text())
    assert config["prompts"] == ["file://prompt.json"]
    assert config["providers"][0]["id"] == "openai:chat:some-model"
    dev = {example.question: example.gold for example in arithmetic.split("dev")}
    assert len(config["tests"]) == 5
    for test in config["tests"]:
        gold = dev[test["vars"]["question"]]
        assert test["assert"] == [
            {
                "type": "javascript",
                "value": "Number(JSON.parse(output.slice(output.indexOf('{'), output.lastIndexOf('}') + 1)).answer)"
                f" === {gold}",
            }
        ]
    messages = json.loads((tmp_path / "prompt.json").read_text())
    shown = jinja2.Template(messages[-1]["content"]).render(question="Q?")
    assert shown == render(template(small("chain-of-thought").solve), {"question": "Q?"})[-1]["content"]


def test_promptfoo_gets_a_debate_as_a_provider_whose_output_its_assertions_read(hall, arithmetic, tmp_path):
    export(hall, tmp_path, format="promptfoo", task=arithmetic)
    config = yaml.safe_load((tmp_path / "promptfooconfig.yaml").read_text())
    assert config["providers"][0]["id"] == "file://debate.py"
    provider = load_file(tmp_path / "debate.py")
    answers = {example.question: example.gold for example in arithmetic.examples}
    with SimulatedServer(behaviour=SimulatedBehaviour(accuracy=1.0, answers=answers)) as server:
        options = {"config": {"api_base": server.url, "model": "known"}}
        for test in config["tests"][:2]:
            question = test["vars"]["question"]
            output = json.loads(provider.call_api(question, options, {})["output"])
            assert test["assert"][0]["value"] == f'JSON.parse(output).bucket === "{output["bucket"]}"'
    assert "error" in provider.call_api("Q", {"config": {"api_base": "http://127.0.0.1:9/v1", "model": "x"}}, {})


@pytest.mark.parametrize("name", ["langchain"])
def test_formats_with_fixed_prompts_refuse_roles_that_choose_demonstrations(
    name, small, arithmetic, model_of, tmp_path
):
    with dspy.context(lm=model_of(arithmetic, 1.0)):
        compiled = compile(small("single"), arithmetic, "knn", train=arithmetic.split("train", limit=4), pool=4)
    with pytest.raises(InputError, match="chooses its demonstrations by the question"):
        export(compiled, tmp_path / "out", format=name)


def test_the_python_file_of_a_knn_program_shows_the_nearest_demonstrations(
    small, arithmetic, model_of, tmp_path, capsys
):
    lm = model_of(arithmetic, 1.0)
    with dspy.context(lm=lm):
        compiled = compile(
            small("single"), arithmetic, "knn", train=arithmetic.split("train", limit=6), pool=6, demos=2
        )
    export(compiled, tmp_path, format="python")
    debate = load_file(tmp_path / "debate.py")
    question = arithmetic.split("test", limit=1)[0].question
    with SimulatedServer() as server:
        assert debate.main(debate.DEBATE, "", None, [question, "--api-base", server.url, "--model", "m"]) == 0
        sent = server.bodies[0]["messages"]
    assert sent == render(template(compiled.program.solve, question), {"question": question})
    assert len(sent) == 6


def test_the_python_file_of_an_ensemble_holds_all_members(small, arithmetic, model_of, tmp_path, capsys):
    lm = model_of(arithmetic, 0.8)
    with dspy.context(lm=lm):
        compiled = compile(
            small("society"), arithmetic, "ensemble", train=arithmetic.split("train", limit=4), members=2, demos=1
        )
    export(compiled, tmp_path, format="python")
    debate = load_file(tmp_path / "debate.py")
    answers = {example.question: example.gold for example in arithmetic.examples}
    question = arithmetic.split("test", limit=1)[0].question
    with SimulatedServer(behaviour=SimulatedBehaviour(accuracy=0.6, answers=answers)) as server:
        told = townhall.lm("openai/known", api_base=server.url, cache=False)
        with dspy.context(lm=told):
            expected = compiled.program(question=question)
        sent = sorted(json.dumps([body["messages"], body["seed"]]) for body in server.bodies)
        count = len(server.bodies)
        arguments = [question, "--api-base", server.url, "--model", "known", "--seeds", "--json"]
        arguments += ["--response-format", "json_schema"]
        assert debate.main(debate.DEBATE, "", None, arguments) == 0
        ours = sorted(json.dumps([body["messages"], body["seed"]]) for body in server.bodies[count:])
    assert ours == sent
    assert json.loads(capsys.readouterr().out)["answer"] == expected.answer


class Move(BaseModel):
    """A move on a board."""

    piece: Literal["king", "queen"] = Field(description="which piece moves")
    square: str
    captures: list[str] = Field(default=[])


@pytest.mark.parametrize(
    "answer", [int, float, str, Literal["yes", "no"], Move, list[int], townhall.task("zebra-grid").answer_type]
)
def test_the_python_file_reads_answers_of_every_type(answer, tmp_path):
    export(TownHall(answer=answer), tmp_path, format="python")
    debate = load_file(tmp_path / "debate.py")
    replies = {
        int: ('{"argument": "a", "answer": "$1,200"}', 1200),
        float: ('{"argument": "a", "answer": "1/2"}', 0.5),
        str: ('Well: {"argument": "a", "answer": "Paris"} I think.', "Paris"),
        Literal["yes", "no"]: ('{"argument": "a", "answer": "Yes."}', "yes"),
        list[int]: ('{"argument": "a", "answer": [1, 2]}', [1, 2]),
    }
    if answer in replies:
        text, expected = replies[answer]
        assert debate.read_reply(text, debate.OUTPUTS["argue"])["answer"] == expected
        with pytest.raises(ValueError, match="answer"):
            debate.read_reply('{"argument": "a", "answer": null}', debate.OUTPUTS["argue"])
    elif answer is Move:
        text = '{"argument": "a", "answer": {"piece": "king", "square": "e1"}}'
        assert debate.read_reply(text, debate.OUTPUTS["argue"])["answer"].square == "e1"
    else:
        text = '{"argument": "a", "answer": {"House 1": {"Name": "Ann"}}}'
        assert debate.read_reply(text, debate.OUTPUTS["argue"])["answer"].cell(1, "name") == "Ann"


def test_the_python_file_retries_once_and_then_lets_the_agent_abstain(small, tmp_path, capsys):
    export(small("majority", samples=3), tmp_path, format="python")
    debate = load_file(tmp_path / "debate.py")
    with SimulatedServer(lambda call: "no JSON here") as server:
        arguments = ["Q?", "--api-base", server.url, "--model", "m", "--json"]
        assert debate.main(debate.DEBATE, "", None, arguments) == 0
        assert server.requests == 6
    result = json.loads(capsys.readouterr().out)
    assert result["answer"] is None
    assert result["decision"]["abstentions"] == 3


def test_the_python_file_asks_once_for_identical_requests_at_temperature_0(small, tmp_path, capsys):
    export(small("majority", samples=5), tmp_path, format="python")
    debate = load_file(tmp_path / "debate.py")
    with SimulatedServer(lambda call: {"reasoning": "r", "answer": 4}) as server:
        arguments = ["Q?", "--api-base", server.url, "--model", "m", "--temperature", "0"]
        assert debate.main(debate.DEBATE, "", None, arguments) == 0
        assert server.requests == 1
    assert capsys.readouterr().out == "4\n"


def test_the_python_file_takes_models_in_turn_a_judge_and_other_settings(small, tmp_path, capsys):
    export(small("debate-only"), tmp_path, format="python")
    debate = load_file(tmp_path / "debate.py")

    def responder(call):
        if "answer" in call.outputs:
            return {"reasoning": "r", "answer": 1 if call.model.endswith("a") else 2}
        return {name: "first" if name == "side" else "text" for name in call.outputs}

    with SimulatedServer(responder) as server:
        arguments = ["Q?", "--api-base", server.url, "--model", "a", "--model", "b", "--judge-model", "c"]
        assert debate.main(debate.DEBATE, "", None, [*arguments, "--set", "rounds=1"]) == 0
        assert [body["model"] for body in server.bodies if body["model"] != "c"].count("a") == 1
        assert server.bodies[-1]["model"] == "c"
        assert server.requests == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["Q?"], "name a model with --model"),
        (["", "--model", "m"], "there is no question"),
        (["Q?", "--model", "m", "--set", "rounds=99"], "--set rounds"),
        (["Q?", "--model", "m", "--set", "nonsense=1"], "not NAME=VALUE with one of"),
        (["--file", "missing.txt", "--model", "m"], "missing.txt: cannot be read"),
        (["Q?", "--model", "m"], "set NO_SUCH_KEY"),
    ],
)
def test_the_python_file_says_in_one_line_what_is_wrong(arguments, message, small, tmp_path, capsys):
    export(small("society"), tmp_path, format="python")
    debate = load_file(tmp_path / "debate.py")
    assert debate.main(debate.DEBATE, "", None, [*arguments, "--key-variable", "NO_SUCH_KEY"]) == 2
    printed = capsys.readouterr().err
    assert message in printed
    assert len(printed.splitlines()) == 1


# -- the single prompt ----------------------------------------------------------------------------------------------


def test_tuned_instructions_are_folded_into_the_single_prompt_and_untuned_ones_are_not(hall, arithmetic):
    hall.argue.signature = hall.argue.signature.with_instructions("Multiply before you add.")
    spliced = as_single_prompt(hall, arithmetic)
    text = spliced.hold.signature.instructions
    assert "How a participant opens:\nMultiply before you add." in text
    assert "How a participant votes" not in text
    assert (spliced.config.personas, spliced.config.rounds) == (2, 2)
    assert len(spliced.hold.demos) == 1


def test_the_single_prompt_is_exported_in_any_format_and_loads_as_an_artifact(hall, arithmetic, tmp_path, model_of):
    hall.vote.signature = hall.vote.signature.with_instructions("Vote for the answer that was checked twice.")
    export(hall, tmp_path / "spliced", as_single_prompt=True, task=arithmetic)
    loaded = townhall.load(tmp_path / "spliced")
    assert loaded.name == "town-hall-prompt"
    assert "checked twice" in loaded.hold.signature.instructions
    export(tmp_path / "spliced", tmp_path / "out.md", format="markdown")
    assert "checked twice" in (tmp_path / "out.md").read_text()


@pytest.mark.parametrize(
    ("style", "told"),
    [
        ("none", "Participant 1, Participant 2"),
        ("devils-advocate", "a devil's advocate"),
        ("experts", "experts of different fields"),
    ],
)
def test_the_single_prompt_follows_the_persona_style(style, told):
    assert told in as_single_prompt(TownHall(answer=int, persona_style=style)).hold.signature.instructions


def test_only_a_town_hall_becomes_a_single_prompt(small):
    with pytest.raises(InputError, match="only a town-hall"):
        as_single_prompt(small("society"))


# -- where files go -------------------------------------------------------------------------------------------------


def test_files_that_are_there_are_not_overwritten_unless_asked(hall, small, tmp_path):
    export(hall, tmp_path, format="messages")
    export(hall, tmp_path, format="messages")  # the same again changes nothing
    with pytest.raises(InputError, match="is there already, with other content"):
        export(small("society"), tmp_path, format="messages")
    export(small("society"), tmp_path, format="messages", overwrite=True)
    assert json.loads((tmp_path / "messages.json").read_text())["strategy"] == "society"


def test_unknown_formats_and_sources_are_refused(hall, tmp_path):
    with pytest.raises(InputError, match=r"unknown export format 'pyton'\. Did you mean 'python'\?"):
        export(hall, tmp_path, format="pyton")
    with pytest.raises(InputError, match="cannot be exported"):
        export(3, tmp_path)
    with pytest.raises(InputError, match="no such artifact"):
        export(tmp_path / "nowhere", tmp_path / "out", format="messages")
