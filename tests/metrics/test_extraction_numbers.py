"""Numbers that a model's text answers with."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from townhall.errors import InputError
from townhall.metrics.extraction import NUMBER_RULES, extract_number

HALF = Fraction(1, 2)


def cases(*pairs: tuple[str, object]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(("text", "value"), pairs, ids=[repr(text)[:60] for text, _ in pairs])


@cases(
    ("$29.00", 29),
    ("so 72, in total.", 72),
    ("$200,000", 200_000),
    ("#### 2,125", 2125),
    ("5", 5),
    ("-5", -5),
    ("\u22125", -5),
    ("(42).", 42),
    ("42!", 42),
    ("711", 711),
    ("I vote for 1 of 3", 1),
    ("I vote for candidate 2.", 2),
    (r"\boxed{\frac{2}{3}}", Fraction(2, 3)),
    ("2/3", Fraction(2, 3)),
    ("2 1/4", Fraction(9, 4)),
    (r"\boxed{12 \text{ cm}}", 12),
    (r"\boxed{12 cm}", 12),
    ("#### 5\nwait, I forgot one step\n#### 9", 9),
    ("0.5", HALF),
    ("1/2", HALF),
    (r"\frac12", HALF),
)
def test_the_listed_values_are_read(text: str, value: object) -> None:
    assert extract_number(text) == value


def test_711_is_not_11_and_5_is_not_minus_5() -> None:
    assert extract_number("711") != extract_number("11")
    assert extract_number("5") != extract_number("-5")


@cases(
    ("42 apples", 42),
    ("42\n", 42),
    ("> 42", 42),
    ("* 42", 42),
    ("- 42", 42),
    ("`42`", 42),
    ("```\n42\n```", 42),
    ("\u201c42\u201d", 42),
    ("[42]", 42),
    ("<42>", 42),
    ("**5**", 5),
    ("12cm", 12),
    ("5 m^2", 5),
    ("5 m²", 5),
    (r"12\text{ cm}^{3}", 12),
    ("60 km/h", 60),
    ("$90^\\circ$", 90),
    ("98.6°F", Fraction("98.6")),
    ("$5/hour", 5),
    ("3rd", 3),
    ("day 5", 5),
    ("12 (twelve)", 12),
    ("72 hours (3 days)", 72),
    ("1/2 (0.5)", HALF),
    ("5/8 of the cake", Fraction(5, 8)),
)
def test_an_answer_and_nothing_else_is_read_with_its_unit_and_wrapping(text: str, value: object) -> None:
    assert extract_number(text) == value


@cases(
    ("1,234,567", 1_234_567),
    ("1,00,000", 100_000),
    ("1.234,56", Fraction("1234.56")),
    ("200 000", 200_000),
    ("200\u202f000", 200_000),
    (r"\boxed{1\,200}", 1200),
    (r"\boxed{\$1{,}200}", 1200),
    ("1'000", 1000),
    ("$50k", 50_000),
    ("1.5 million", 1_500_000),
    ("The answer is $3.5 billion.", 3_500_000_000),
    ("1.2e5", 120_000),
    ("The answer is 1.2 × 10^5.", 120_000),
    (r"$1.2 \times 10^{5}$", 120_000),
    ("2½ cups", Fraction(5, 2)),
    ("7.333...", Fraction(22, 3)),
    ("-$120", -120),
    ("$-120", -120),
    ("The answer is negative 5.", -5),
    ("The answer is minus 5.", -5),
    ("Final answer: −3/4", Fraction(-3, 4)),
    ("The temperature is -5 degrees.", -5),
    ("007", 7),
    ("0", 0),
)
def test_spellings_of_numbers(text: str, value: object) -> None:
    assert extract_number(text) == value


@cases(
    ("20%", 20),
    ("The answer is 20%.", 20),
    ("0.2", Fraction(1, 5)),
    ("3:00 pm", 3),
    ("3 pm", 3),
    ("15:00", 15),
    ("2:30", Fraction(5, 2)),
    ("2 minutes 5 seconds", 125),
    ("2 hours and 30 minutes", 150),
    ("5 feet 3 inches", 63),
    ("5 dollars and 20 cents", Fraction("5.2")),
    ("$5 and 20 cents", Fraction("5.2")),
    ("25 cents", 25),
    ("5 out of 8", 5),
    ("8 * 0.5 = 4", 4),
    ("x = 5", 5),
    ("11 = n", 11),
    ("30 - (4 + 6)", 20),
    ("72 + 25", 97),
    ("20 - 5", 15),
    ("2^10", 1024),
    ("The answer is approximately 3.33 or 10/3.", Fraction(10, 3)),
    ("twelve (12)", 12),
    ("The answer is twelve.", 12),
    ("twenty-three eggs", 23),
    ("one hundred and five", 105),
    ("three quarters", Fraction(3, 4)),
    ("zero", 0),
)
def test_the_documented_policies(text: str, value: object) -> None:
    assert extract_number(text) == value


@cases(
    ("", None),
    ("   \n", None),
    ("Let me think about it.", None),
    ("I need more time to think about the 3 apples.", None),
    ("I do not know.", None),
    ("The answer is unknown.", None),
    ("It cannot be determined.", None),
    ("The answer cannot be determined from 3 facts.", None),
    ("There is no solution in 5 cases.", None),
    ("none", None),
    ("Answer: None", None),
    ("Answer: N/A", None),
    ("Answer: A", None),
    ("Answer: see above", None),
    ("Answer: <number>", None),
    ("First she buys 3. Then she buys 4.", None),
    ("First we find how many there are. Kim has 3 times as many as Lee, so we can work it out as follows:", None),
    ("The remaining 4 pieces are eaten. So none are left.", None),
    ("All 3 agents said 7.", None),
    ("10-15", None),
    ("10 to 15", None),
    ("The answer is between 40 and 42.", None),
    ("5 or 6", None),
    ("The answers are 5 and 6.", None),
    ("4 cats and 7 dogs", None),
    ("x = 2 or x = 3", None),
    ("x = 5, y = 6", None),
    ("(3, 4)", None),
    ("1,2,3", None),
    ("3,5", None),
    ("3:2", None),
    ("50:50", None),
    ("We need to solve 2x + 3 = 51.", None),
    ("3 + 2x", None),
    ("2x + 3 hours", None),
    ("P = $9 - $4k", None),
    (r"5\pi", None),
    (r"\boxed{2\sqrt{3}}", None),
    ("Answer: 12/05/2024", None),
    ("Answer: March 3, 2021", None),
    ("The answer can't be 40.", None),
    (r"\boxed{42", None),
    ('{"reasoning": "the total is 20 * $15 = $30', None),
    ("<think>The answer is 5. Hmm", None),
)
def test_a_text_that_states_no_single_number_is_a_blank(text: str, value: None) -> None:
    assert extract_number(text) is None


@cases(
    ("The final answer is: $\\boxed{32}$", 32),
    ("**Answer:** 17", 17),
    ("**Answer**: 17", 17),
    ("Answer: **17**", 17),
    ("### Answer\n\n17", 17),
    ("## Final Answer:\n17", 17),
    ("**Final Answer**\n\n17", 17),
    ("<answer>17</answer>", 17),
    ("[[ ## answer ## ]]\n17\n\n[[ ## completed ## ]]", 17),
    ("ANSWER: 17", 17),
    ("answer=17", 17),
    ("Ans: 17", 17),
    ("A: 17", 17),
    ("Final solution: 17", 17),
    ("Respuesta: 17", 17),
    ("답: 17", 17),
    ("The answer is:\n\n$$17$$", 17),
    ("The answer is:\n\\[ x = 17 \\]", 17),
    ("The answer is \\$17.", 17),
    ("The answer, rounded to two places, is 0.33.", Fraction("0.33")),
    ("The answer to 6*7 is 42.", 42),
    ("the answer, then, is 42", 42),
    ("The answer remains 42.", 42),
    ("Thus, the answer would be 42.", 42),
    ("12 is the answer.", 12),
    ("Answer: 12\nConfidence: 90%", 12),
    ("The answer is 12. [[1, 5, 2]]", 12),
    ("Answer: 42 (as of 2023)", 42),
    ("Answer: 42 [1]", 42),
    ("In 2020 the answer is 500.", 500),
    ("The answer is 500 in 2020.", 500),
)
def test_marked_answers(text: str, value: object) -> None:
    assert extract_number(text) == value


@cases(
    ('{"answer": "17"}', 17),
    ('```json\n{"reasoning": "7 + 10", "answer": 17}\n```', 17),
    ('{"answer": "12", "reasoning": "So the answer is 11."}', 12),
    ("{'answer': '17'}", 17),
    ('{"Final_Answer": 17}', 17),
    ('{"answer": "17', 17),
    ('{"reasoning": "a "quoted" word", "answer": "17"}', 17),
    ('{"reasoning": "line\nbreak" "answer": "17"}', 17),
    ('{"reasoning": "\\( x \\)", "answer": "17"}', 17),
    ('{"reasoning": "done. Answer: \\"answer\\": \\"17\\""}', 17),
    ('{"answer": "answer": "17"}', 17),
    ('{"answer": 5 + 6}', 11),
    ('{"answer": "5 + 6 = 11 apples"}', 11),
    ('{"answer": ["5"]}', 5),
    ('{"answer": {"value": 5, "unit": "km"}}', 5),
    ('{"answer": {"red": 3, "blue": 2, "total": 5}}', 5),
    ('{"answer": {"red": 3, "blue": 2}}', None),
    ('{"answer": {"hours": 3, "minutes": 30}}', 210),
    ('{"answer": ["5", "6"]}', None),
    ('{"answer": null}', None),
    ('{"answer": true}', None),
    ('{"answer": ""}', None),
    ('{"answer": "there is an error in the task"}', None),
    ('{"reasoning": "we get 17", "total": 17}', 17),
    ('{"number_of_apples": 12}', 12),
    ('{"answer": ""}\nSo we look again.\n{"answer": "43"}', 43),
    ('{"answer": "42"}\nWait, that was wrong.\n{"answer": "43"}', 43),
    ('Here: {"answer": "42"} Ask me 3 more questions!', 42),
)
def test_answers_in_json_well_formed_or_not(text: str, value: object) -> None:
    assert extract_number(text) == value


@cases(
    ("Answer: 5\n\nNo, one is missing.\nAnswer: 6", 6),
    ("The answer is not 5 but 6.", 6),
    ("The answer is 6, not 5.", 6),
    ("The answer isn't 5; it's 6.", 6),
    ("The answer is not 5. It is 6.", 6),
    ("My previous answer was 5, but the correct answer is 6.", 6),
    ("My answer is 6. My initial answer was 5.", 6),
    ("If the answer is 5, then we fail. The answer is 6.", 6),
    ("Agent 1 says the answer is 5. My answer is 6.", 6),
    ("My answer is 6. Agent 2's answer is 5, which is wrong.", 6),
    ("I agree with Agent 2 that the answer is 6.", 6),
    ("I apologise. The final answer is indeed 6 and not 5.", 6),
    ("<think>The answer is 5. No.</think>The answer is 6.", 6),
    ("The answer is 6.\n\n## Question:\nMo has 7 pears.\nThe answer is 7.", 6),
    ("Q: first\nA: 6\n\nQ: What is 3 + 4?\nA: 7", 6),
    ("The answer is 6.\n\nProblem 2: Mo has 7 pears.\nThe answer is 7.", 6),
    ("The answer is 5, I think.\n\nProblem: the tax is missing.\nSo the answer is 6.", 6),
    ("The answer is 6. The answer is <number>.", 6),
    ("The answer is 15. Note: this answer assumes there are 12 months.", 15),
)
def test_the_last_answer_of_the_speaker_counts(text: str, value: int) -> None:
    assert extract_number(text) == value


@cases(
    ("The answer is 5 apples because 3 + 2 = 5.", 5),
    ("The answer is 5 because each of 3 boxes has 10.", 5),
    ("She needs 7 more weeks to save $60 if she saves $4 per week.", 7),
    ("Therefore, 3 months of rent cost Ann $900.", 900),
    ("So 75% of 40 is 30.", 30),
    ("So in 5 days she reads 100 pages.", 100),
    ("Therefore after 3 years, he will be 15.", 15),
    ("So each of the 4 kids gets 3 apples.", 3),
    ("Hence, there are 12 of the 20 apples left.", 12),
    ("Thus, she has 100 - 40 = 60 dollars left after paying 40 dollars.", 60),
    ("We start with 3 apples. We add 4 apples. So she has 7 apples.", 7),
    ("Step 1: 3*4 = 12\nStep 2: 12+5 = 17", 17),
    ("1. Total: 16\n2. Left: 9\n\nTherefore, Ann makes **$18** every day.", 18),
    ("The total is 12. I hope this helps!", 12),
    ("The answer is 24 km, which is about 15 miles.", 24),
    ("The answer is about 24 (23.7 to be exact).", 24),
    ("Let x be the number. Then 2x + 3 = 51, so x = 24.", 24),
    ("I'm not sure, but I'd say 24.", 24),
    ("Probably 24", 24),
    ("Both made an error; the answer should be 24 rather than 26.", 24),
    ("Agent 1: 26\nAgent 2: 28\nMy answer: 24", 24),
    ("She has 3. Each costs 8. Ann earns **$24** per day.", 24),
    ("Step 1. Add 3 and 4.\nStep 2. Double it.\n\n**14**", 14),
    ("Final Answer: The final answer is $24$. I hope it is correct.", 24),
    ("I got 42", 42),
    ("It's not 40 but 42.", 42),
    ("Tom has 42 apples.", 42),
    ("Total cost: $11", 11),
    ("- 5 apples\n- 6 pears\nSo 11 in total.", 11),
)
def test_the_result_among_the_numbers_of_a_sentence(text: str, value: int) -> None:
    assert extract_number(text) == value


@cases(
    ("so 5 or \\boxed{6} and \\boxed{\\text{none}}", 6),
    ("\\boxed{\\boxed{5}}", 5),
    ("\\boxed{\\text{The answer is } 5}", 5),
    ("\\boxed{\\frac{1}{2} \\text{ cups}}", HALF),
    ("the answer is 5", None),
    ("\\boxed{7} then \\boxed{8}", 8),
    ("\\fbox{9}", 9),
)
def test_the_boxed_rule_reads_the_last_readable_box_only(text: str, value: object) -> None:
    assert extract_number(text, "boxed") == value


@cases(("the answer is 5, for 3 people in 2 days", 2), ("about A1 and m^2", None), ("10-5", 5), ("costs $1,200.", 1200))
def test_the_last_number_rule_takes_the_last_number(text: str, value: object) -> None:
    assert extract_number(text, "last-number") == value


@cases(
    ('{"answer": "about 1,200 of 3"}', 1200),
    ('{"answer": "3/4"}', Fraction(3, 4)),
    ('{"answer": "8 * 2 = 16"}', 8),
    ('first {2} then {"answer": "17"}', 17),
    ('{"answer": "5"} and {"answer": "6"}', 5),
    ("\\boxed{3} or \\boxed{12}", 12),
    ("\\boxed{-3}", None),
    ("the answer is 5", None),
)
def test_the_zeroeval_rule_keeps_the_benchmarks_faults(text: str, value: object) -> None:
    assert extract_number(text, "zeroeval") == value


def test_zeroeval_reads_boxes_of_llama_only_when_it_is_told_the_model() -> None:
    assert extract_number("\\boxed{3}", "zeroeval", model="Meta-Llama-3.1-8B") == 3
    assert extract_number("\\boxed{3}", "zeroeval", model="gemma") is None


def test_an_unknown_rule_is_an_error_that_lists_the_rules() -> None:
    with pytest.raises(
        InputError, match=r"unknown extraction rule 'flexibel'\. Did you mean 'flexible'\?.*last-number"
    ):
        extract_number("5", "flexibel")


@given(st.integers(-(10**9), 10**9))
@settings(max_examples=60, deadline=None)
def test_any_integer_is_read_from_every_kind_of_statement(number: int) -> None:
    for text in (
        f"{number}",
        f"{number:,}",
        f"The answer is {number}.",
        f"We multiply 3 by 4. Answer: {number:,}",
        f"\\boxed{{{number}}}",
        f'{{"reasoning": "3 * 4", "answer": "{number:,}"}}',
        f"#### {number}",
        f"In 7 steps we are done. So the total is {number}.",
    ):
        assert extract_number(text) == number, text


@given(st.text(max_size=200) | st.text(alphabet="{}[]()\"'\\$#*:=.-+/^%0123456789 \nansweribox", max_size=200))
@settings(max_examples=300, deadline=None)
def test_no_text_makes_a_rule_fail(text: str) -> None:
    for rule in NUMBER_RULES:
        value = extract_number(text, rule)
        assert value is None or isinstance(value, Fraction)


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "text",
    [
        "9" * 100_000,
        "1e999999999",
        "\\boxed{" * 20_000,
        "(" * 50_000,
        "answer " * 20_000,
        "The answer is " * 5_000,
        '{"answer": ' * 5_000,
        "2^" * 5_000 + "2",
        "9^9^9^9",
        "{" * 20_000,
    ],
    ids=lambda text: text[:12],
)
def test_hostile_texts_take_seconds_at_most(text: str) -> None:
    for rule in NUMBER_RULES:
        extract_number(text, rule)
