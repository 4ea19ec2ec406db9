"""Verbs of requests and of tool names: what is asked for, and what contradicts it."""

from __future__ import annotations

import pytest

from toolscout.verbs import CREATE, READ, actions, other_action, wanted_action


@pytest.mark.parametrize(
    ("request_text", "right", "wrong"),
    [
        ("merge MR 42", "merge_merge_request", "create_merge_request"),
        ("delete a branch", "delete_branch", "create_branch"),
        ("please cancel my meeting", "cancel_event", "create_event"),
        ("could you list the open issues", "list_issues", "close_issue"),
        ("approve pull request 7", "approve_pull_request", "list_pull_requests"),
        ("unarchive the spring release", "unarchive_release", "archive_release"),
        ("get rid of the stale branch", "delete_branch", "get_branch"),
        ("switch the beta flag off for everybody", "disable_flag", "enable_flag"),
        ("set a weekly reminder up", "create_reminder", "update_reminder"),
        ("kick Bob out of the channel", "remove_member", "list_members"),
    ],
)
def test_a_verb_agrees_with_its_own_group_and_contradicts_others(request_text: str, right: str, wrong: str) -> None:
    wanted = wanted_action(request_text)
    assert wanted & actions(right)
    assert other_action(wanted) & actions(wrong)
    assert not wanted & actions(wrong)


@pytest.mark.parametrize(
    ("request_text", "name"),
    [
        ("send a text to Bob", "CreateMessage"),
        ("cancel the order", "delete_order"),
        ("assign it to Ann", "update_issue"),
    ],
)
def test_verbs_that_may_mean_the_same_do_not_contradict(request_text: str, name: str) -> None:
    assert not other_action(wanted_action(request_text)) & actions(name)


def test_only_the_first_words_of_a_request_say_what_it_asks_for() -> None:
    assert wanted_action("put the pages online so that everybody can read them") == 0
    assert wanted_action("the weather in Oslo") == 0
    assert wanted_action('"delete me" is the title: create a page') == CREATE


def test_a_name_that_begins_with_a_verb_means_that_verb() -> None:
    assert actions("get_set_members") == READ
    assert actions("create_merge_request") == CREATE
    assert actions("weather") == 0
    assert other_action(0) == 0
