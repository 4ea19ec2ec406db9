"""`toolscout search`: for people and for programs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]


def test_unquoted_words_join_into_one_query(toolscout: Run, sample_store: str) -> None:
    ran = toolscout("search", "send", "an", "email", "--store", sample_store, "--json")
    quoted = toolscout("search", "send an email", "--store", sample_store, "--json")
    assert ran.code == quoted.code == 0
    assert ran.err == ""
    assert ran.json["tools"] == quoted.json["tools"]
    assert ran.json["tools"][0]["key"] == "gmail__send_email"
    assert ran.json["metadata"]["ranker"] == "hybrid"


def test_people_see_a_table_and_what_it_saved(toolscout: Run, sample_store: str) -> None:
    ran = toolscout("search", "refund a payment", "-k", "2", "--store", sample_store)
    assert ran.code == 0
    assert "stripe__create_refund" in ran.out
    assert "Give money back for a payment" in ran.out
    assert "tokens instead of" in ran.out
    assert "128 tools" in ran.out
    assert "Traceback" not in ran.err


def test_several_queries_are_several_results(toolscout: Run, sample_store: str) -> None:
    arguments = ("search", "find a flight", "--also", "cancel a meeting", "--also", "rain", "--threshold", "0")
    ran = toolscout(*arguments, "--store", sample_store, "--json")
    assert [len(result["tools"]) for result in ran.json["results"]] == [10, 10, 10]
    table = toolscout(*arguments, "--store", sample_store)
    assert all(query in table.out for query in ("find a flight", "cancel a meeting", "rain"))


@pytest.mark.parametrize(
    ("arguments", "check"),
    [
        (("--server", "gmail"), lambda tool: tool["server"] == "gmail"),
        (("--server", "gmail", "--server", "slack"), lambda tool: tool["server"] in ("gmail", "slack")),
        (("--category", "communication"), lambda tool: tool["category"] == "communication"),
        (("--tag", "email"), lambda tool: "email" in tool["tags"] and tool["matched_tags"] == ["email"]),
        (("--tag", "email", "--tag", "outbox", "--match", "all"), lambda tool: tool["name"] == "send_email"),
        (("--detail", "minimal"), lambda tool: set(tool) == {"key", "call_with", "score", "fit"}),
        (("--detail", "full"), lambda tool: "input_schema" in tool),
        (("--explain", "--ranker", "keyword"), lambda tool: tool["explain"]["matched_words"]),
        (("--ranker", "keyword", "--threshold", "60"), lambda tool: tool["score"] >= 60),
        (("--ranker", "fuzzy", "--limit", "3"), lambda tool: 0 < tool["score"] <= 1),
    ],
)
def test_each_option_does_what_it_says(
    toolscout: Run, sample_store: str, arguments: tuple[str, ...], check: Callable[[dict[str, Any]], bool]
) -> None:
    ran = toolscout("search", "send an email", *arguments, "--store", sample_store, "--json")
    assert ran.code == 0
    assert ran.json["tools"]
    assert all(check(tool) for tool in ran.json["tools"])


def test_a_budget_of_tokens_holds(toolscout: Run, sample_store: str) -> None:
    ran = toolscout("search", "mail", "--detail", "full", "--max-tokens", "300", "--store", sample_store, "--json")
    assert 0 < ran.json["metadata"]["tokens"] <= 300


def test_explain_and_full_detail_are_shown_to_people(toolscout: Run, sample_store: str) -> None:
    wanted = ("--ranker", "keyword", "--explain", "--detail", "full", "-k", "1")
    ran = toolscout("search", "send_email", *wanted, "--store", sample_store)
    assert '"phrase": 150' in ran.out
    assert "parameter" in ran.out
    assert "subject" in ran.out


def test_nothing_found_is_exit_code_one_with_suggestions(toolscout: Run, sample_store: str) -> None:
    ran = toolscout("search", "zqxj vvkk wlrm", "--ranker", "keyword", "--store", sample_store)
    assert ran.code == 1
    assert "No tool fits" in ran.out
    assert "communication" in ran.out
    machine = toolscout("search", "zqxj vvkk wlrm", "--ranker", "keyword", "--store", sample_store, "--json")
    assert machine.code == 1
    assert machine.json["tools"] == []
    assert machine.json["suggestions"]


@pytest.mark.parametrize("arguments", [("search", "mail", "--also", "post"), ("list",), ("categories",), ("tags",)])
def test_an_empty_catalogue_says_how_to_fill_it_and_nothing_else(toolscout: Run, arguments: tuple[str, ...]) -> None:
    ran = toolscout(*arguments, "--store", "memory:")
    assert ran.out.startswith("The catalogue is empty.")
    assert ran.out.count("\n") == 1
    assert ran.out.index("toolscout import") < ran.out.index("index --config") < ran.out.index("index --sample")
    wrong = toolscout("describe", "gmail__send_email", "--store", "memory:")
    assert "hint: The catalogue is empty." in wrong.err


@pytest.mark.parametrize("arguments", [("search", "mail"), ("list",), ("categories",), ("tags",)])
def test_a_catalogue_that_a_policy_hides_is_not_called_empty(
    toolscout: Run, sample_store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    policy = tmp_path / "policy.toml"
    policy.write_text('[[allow]]\nwho = ["user:ann"]\n')
    monkeypatch.setenv("TOOLSCOUT_POLICY", str(policy))
    ran = toolscout(*arguments, "--as", "bob", "--store", sample_store)
    assert ran.out == "This caller may not see any tool: `toolscout policy check KEY` shows why.\n"
    assert "may see none" not in toolscout(*arguments, "--as", "ann", "--store", sample_store).out


def test_another_user_sees_what_everyone_sees(toolscout: Run, sample_store: str) -> None:
    ran = toolscout("search", "send an email", "--as", "ann", "--store", sample_store, "--json")
    assert ran.json["tools"][0]["key"] == "gmail__send_email"


def test_an_answer_by_words_alone_is_marked_as_degraded(
    toolscout: Run, sample_store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLSCOUT_EMBEDDER", "none")
    ran = toolscout("search", "send email", "--threshold", "0", "--store", sample_store)
    assert "degraded: no embedder is configured" in ran.out
    assert toolscout("search", "send email", "--store", sample_store, "--json").json["metadata"]["degraded"]
