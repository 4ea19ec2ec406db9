"""The access rules: deny has precedence, the default is to deny, and an error denies."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guarantees import guarantee
from toolscout.models import Caller, Facets
from toolscout.policy.policy_file import ItemKind, Policy, Rule, parse_policy
from toolscout.policy.rules import Rules, may_see
from toolscout.policy.server_items import ServerItem

pytestmark = guarantee("access:one-predicate", "access:fails-closed")

Make = Callable[..., Facets]
ANN = Caller(tenant="acme", user="ann", groups=frozenset({"engineering"}), key="ab12cd34ef")


@pytest.fixture
def tool(make_facets: Make) -> Make:
    def made(name: str = "list_issues", **fields: Any) -> Facets:
        return make_facets(name, **{"server": "github", "tenant": "acme", "tags": ("code",), **fields})

    return made


def rules(text: str) -> Rules:
    return Rules(parse_policy(text))


def test_without_a_policy_everyone_of_the_tenant_may_do_everything(tool: Make) -> None:
    assert Rules()(ANN, tool())
    assert Rules().may_call(ANN, tool())
    assert not Rules()(Caller(tenant="other"), tool())


@pytest.mark.parametrize("who", ["anyone", "tenant:acme", "group:engineering", "user:ann", "key:ab12cd34ef"])
def test_a_rule_names_whom_it_is_about(tool: Make, who: str) -> None:
    judged = rules(f'[[allow]]\nwho = ["{who}"]')
    assert judged(ANN, tool())
    stranger = Caller(tenant="acme", user="eve")
    assert judged(stranger, tool()) == (who in ("anyone", "tenant:acme"))


@pytest.mark.parametrize(
    ("narrowed", "fits"),
    [
        ('servers = ["github"]', True),
        ('servers = ["git*"]', True),
        ('servers = ["jira"]', False),
        ('tools = ["github__list_*"]', True),
        ('tools = ["list_*"]', True),
        ('tools = ["create_*"]', False),
        ('tags = ["CODE"]', True),
        ('tags = ["mail"]', False),
        ('categories = ["Development"]', True),
        ("read_only = true", False),
        ('tenant = "acme"', True),
        ('tenant = "other"', False),
        ('servers = ["github"]\ntags = ["mail"]', False),
    ],
)
def test_a_rule_narrows_by_all_that_it_names(tool: Make, narrowed: str, fits: bool) -> None:
    judged = rules(f'[[allow]]\nwho = ["anyone"]\n{narrowed}')
    assert judged(ANN, tool(category="development")) is fits


def test_read_only_lets_through_what_a_trusted_server_declares(tool: Make) -> None:
    judged = rules('[[allow]]\nwho = ["anyone"]\nread_only = true')
    assert judged(ANN, tool(read_only=True))


@pytest.mark.parametrize("name", ["deleteRepo", "DELETE_REPO", "Delete_repo"])
def test_globs_ignore_case(tool: Make, name: str) -> None:
    denied = rules('[[allow]]\nwho = ["anyone"]\n[[deny]]\nwho = ["anyone"]\ntools = ["delete*", "DELETE_R*"]')
    assert not denied(ANN, tool(name))
    assert denied(ANN, tool("list_repos"))


def test_permission_to_see_is_not_permission_to_call(tool: Make) -> None:
    judged = rules('[[allow]]\nwho = ["anyone"]\nmay = "see"\n[[allow]]\nwho = ["user:ann"]')
    assert judged.may_call(ANN, tool())
    eve = Caller(tenant="acme", user="eve")
    assert judged(eve, tool())
    assert not judged.may_call(eve, tool())


def test_deny_wins_whatever_allows(tool: Make) -> None:
    judged = rules(
        '[[allow]]\nwho = ["user:ann"]\n[[deny]]\nname = "no deleting"\nwho = ["anyone"]\ntools = ["*delete*"]'
    )
    assert judged(ANN, tool())
    assert not judged(ANN, tool("delete_repo"))
    assert judged.explain(ANN, tool("delete_repo"), "call").because == "no deleting denies it"


def test_a_deny_of_calls_leaves_the_tool_to_be_seen(tool: Make) -> None:
    judged = rules('[[allow]]\nwho = ["anyone"]\n[[deny]]\nwho = ["anyone"]\nmay = "call"')
    assert judged(ANN, tool())
    assert not judged.may_call(ANN, tool())


def test_labels_of_a_server_that_is_not_trusted_open_nothing_and_still_close(tool: Make) -> None:
    opening = rules('[[allow]]\nwho = ["anyone"]\ntags = ["code"]')
    assert not opening(ANN, tool(trusted=False))
    closing = rules('[[allow]]\nwho = ["anyone"]\n[[deny]]\nwho = ["anyone"]\ntags = ["code"]')
    assert not closing(ANN, tool(trusted=False))


def test_a_users_own_tool_needs_no_rule_and_can_be_denied(tool: Make) -> None:
    assert rules("")(ANN, tool(owner="ann"))
    assert not rules('[[deny]]\nwho = ["anyone"]')(ANN, tool(owner="ann"))
    assert not rules("")(ANN, tool(owner="bob"))


def test_no_rule_allows_a_foreign_quarantined_or_disabled_tool(tool: Make) -> None:
    judged = rules('[[allow]]\nwho = ["anyone"]')
    for fields, because in (
        ({"tenant": "other"}, "another tenant"),
        ({"owner": "bob"}, "another user"),
        ({"quarantine_reason": "poisoned"}, "held back: poisoned"),
        ({"enabled": False}, "disabled"),
    ):
        assert not judged(ANN, tool(**fields))
        assert because in judged.explain(ANN, tool(**fields), "see").because


def test_an_error_in_a_rule_denies(tool: Make) -> None:
    broken = Rule(name="broken", who=frozenset({"anyone"}), may="see", servers=5)  # type: ignore[arg-type]
    judged = Rules(Policy(allow=(Rule(name="all", who=frozenset({"anyone"})),), deny=(broken,)))
    assert not judged(ANN, tool())
    assert not judged.may_call(ANN, tool())


def test_another_policy_counts_at_once_and_has_another_version(tool: Make) -> None:
    judged = rules('[[allow]]\nwho = ["anyone"]')
    assert judged(ANN, tool())
    before = judged.version
    judged.apply(parse_policy(""))
    assert not judged(ANN, tool())
    assert judged.version > before


def item(name: str, kind: ItemKind = "resources", server: str = "files") -> ServerItem:
    return ServerItem(kind=kind, server=server, title="My Files", name=name)


PUBLIC = 'who = ["anyone"]\nservers = ["files"]\nresources = ["file:///public/*"]'


@pytest.mark.parametrize("calls_tools", [True, False])
def test_without_rules_that_name_resources_who_may_call_a_tool_may_use_them(calls_tools: bool) -> None:
    for judged in (Rules(), rules('[[allow]]\nwho = ["anyone"]\ntools = ["x"]')):
        assert judged.may_use(ANN, item("file:///a"), calls_tools=calls_tools) is calls_tools
        assert judged.may_use(ANN, item("review", "prompts"), calls_tools=calls_tools) is calls_tools


@pytest.mark.parametrize("calls_tools", [True, False])
def test_where_an_allow_rule_names_resources_nothing_else_opens_them(calls_tools: bool, tool: Make) -> None:
    judged = rules(
        f'[[allow]]\n{PUBLIC}\n[[allow]]\nwho = ["user:ann"]\ntools = ["*"]\n'
        '[[allow]]\nwho = ["group:engineering"]\nservers = ["wiki"]\n[[allow]]\nwho = ["anyone"]\nmay = "see"'
    )
    assert judged.may_use(ANN, item("file:///PUBLIC/a/b"), calls_tools=calls_tools)
    assert not judged.may_use(ANN, item("file:///private/a"), calls_tools=calls_tools)
    assert not judged.may_use(ANN, item("file:///public/a", server="other"), calls_tools=calls_tools)
    assert judged.may_use(ANN, item("page:1", server="wiki"), calls_tools=calls_tools), "a rule without any names"
    assert judged.may_use(ANN, item("review", "prompts"), calls_tools=calls_tools) is calls_tools, "no rule names these"
    assert not rules(f"[[allow]]\n{PUBLIC}")(ANN, tool(server="files")), "it opens no tool"


@pytest.mark.parametrize(
    "address",
    [
        "file:///public/../private/a",
        "file:///public/%2e%2e/private/a",
        "file:///public/%252e%252e/private/a",
        "file:///public/..%2Fprivate/a",
        "file:///public/..\\private\\a",
        "file:///public/./../private/a",
        "file:///public/://../../private/a",
        "file:////private/a",
        "file:///%2Fprivate/a",
        "file:///private//a/",
    ],
)
def test_another_spelling_of_an_address_opens_nothing(address: str) -> None:
    assert not rules(f"[[allow]]\n{PUBLIC}").may_use(ANN, item(address), calls_tools=True)
    denied = rules('[[allow]]\nwho = ["anyone"]\n[[deny]]\nwho = ["anyone"]\nresources = ["file:///private/*"]')
    assert not denied.may_use(ANN, item(address), calls_tools=True)
    assert denied.may_use(ANN, item("file:///public/a"), calls_tools=True)


def test_a_deny_of_resources_and_prompts_leaves_tools_and_wins_over_every_allow(tool: Make) -> None:
    judged = rules(
        f'[[allow]]\nwho = ["anyone"]\n[[allow]]\n{PUBLIC}\n'
        '[[deny]]\nwho = ["user:ann"]\nservers = ["my files"]\nresources = ["*secret*"]\nprompts = ["rev*"]'
    )
    assert not judged.may_use(ANN, item("file:///public/secret"), calls_tools=True)
    assert not judged.may_use(ANN, item("review", "prompts"), calls_tools=True)
    assert judged.may_use(ANN, item("greet", "prompts"), calls_tools=True)
    assert judged.may_use(ANN, item("file:///public/a"), calls_tools=True)
    assert judged.may_call(ANN, tool(server="files"))
    closed = rules(f'[[allow]]\n{PUBLIC}\n[[deny]]\nwho = ["anyone"]\nservers = ["files"]')
    assert not closed.may_use(ANN, item("file:///public/a"), calls_tools=True)


_WHO = st.sampled_from(["anyone", "tenant:a", "tenant:b", "group:g", "user:u", "user:v", "key:k"])
_RULE = st.builds(
    Rule,
    name=st.just("rule"),
    who=st.frozensets(_WHO, min_size=1, max_size=3),
    tenant=st.sampled_from([None, "a", "b"]),
    may=st.sampled_from(["see", "call"]),
    servers=st.lists(st.sampled_from(["s", "t", "*"]), max_size=2).map(tuple),
    tools=st.lists(st.sampled_from(["x", "y", "*", "s__*", "[!x]", "?"]), max_size=2).map(tuple),
    tags=st.sampled_from([frozenset(), frozenset(), frozenset({"code"})]),
    read_only=st.booleans(),
    resources=st.sampled_from([(), (), ("*",)]),
)
_CALLER = st.builds(
    Caller,
    tenant=st.sampled_from(["a", "b"]),
    user=st.sampled_from([None, "u", "v"]),
    groups=st.sampled_from([frozenset(), frozenset({"g"})]),
    key=st.sampled_from([None, "k"]),
)


def decides(rules: Sequence[Rule], caller: Caller, shown: Facets, *, labels: bool) -> bool:
    """Test a tool against one rule after the other, as docs/policy.md describes it."""
    names = {"anyone", f"tenant:{caller.tenant}", f"user:{caller.user}", f"key:{caller.key}"}
    names |= {f"group:{group}" for group in caller.groups}
    return any(
        rule.tenant in (None, caller.tenant)
        and rule.who & names
        and (not rule.servers or any(fnmatchcase(shown.server, glob) for glob in rule.servers))
        and (not rule.tools or any(fnmatchcase(name, glob) for glob in rule.tools for name in (shown.key, shown.name)))
        and (not rule.tags or (labels and rule.tags & set(shown.tags)))
        and (not rule.read_only or shown.read_only)
        and (not rule.resources or rule.tools or rule.tags or rule.read_only)
        for rule in rules
    )


@given(allow=st.lists(_RULE, max_size=4), deny=st.lists(_RULE, max_size=3), callers=st.lists(_CALLER, max_size=3))
def test_the_quick_way_to_judge_says_what_the_slow_one_says(
    make_facets: Make, allow: list[Rule], deny: list[Rule], callers: list[Caller]
) -> None:
    judged = Rules(Policy(allow=tuple(allow), deny=tuple(deny)))
    hiding = [rule for rule in deny if rule.may == "see"]
    for caller, server, name, trusted in itertools.product(callers, "st", "xyz", (True, False)):
        tags = ("code",) if name == "y" else ()
        facets = make_facets(name, server=server, tenant=caller.tenant, tags=tags, trusted=trusted, read_only=trusted)
        hidden = decides(hiding, caller, facets, labels=True)
        assert judged(caller, facets) == (not hidden and decides(allow, caller, facets, labels=trusted))


@given(allow=st.lists(_RULE, max_size=4), deny=st.lists(_RULE, max_size=2), caller=_CALLER, data=st.data())
def test_whatever_the_policy_calling_takes_seeing_and_nothing_crosses_a_tenant(
    make_facets: Make, allow: list[Rule], deny: list[Rule], caller: Caller, data: st.DataObject
) -> None:
    judged = Rules(Policy(allow=tuple(allow), deny=tuple(deny)))
    facets = make_facets(
        data.draw(st.sampled_from(["x", "y", "z"])),
        server=data.draw(st.sampled_from(["s", "t"])),
        tenant=data.draw(st.sampled_from(["a", "b"])),
        owner=data.draw(st.sampled_from([None, "u", "v"])),
        read_only=data.draw(st.booleans()),
        trusted=data.draw(st.booleans()),
    )
    if judged.may_call(caller, facets):
        assert judged(caller, facets)
    if judged(caller, facets):
        assert may_see(caller, facets)
        assert facets.tenant == caller.tenant
        assert facets.owner in (None, caller.user)
    if not allow and facets.owner is None:
        assert not judged(caller, facets)
    more = Rules(Policy(allow=tuple(allow), deny=(*deny, Rule(name="all", who=frozenset({"anyone"}), may="see"))))
    assert not more(caller, facets)
