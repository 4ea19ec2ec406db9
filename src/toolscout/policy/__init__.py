"""Who may see and call what: the policy file, the rules that it makes, limits, and callers from claims and API keys."""

from toolscout.policy.claims import ClaimMap, caller_from_claims
from toolscout.policy.policy_file import Act, ItemKind, Limit, Policy, Rule, parse_policy, read_policy
from toolscout.policy.rules import Decision, Rules
from toolscout.policy.server_items import ServerItem

__all__ = [
    "Act",
    "ClaimMap",
    "Decision",
    "ItemKind",
    "Limit",
    "Policy",
    "Rule",
    "Rules",
    "ServerItem",
    "caller_from_claims",
    "parse_policy",
    "read_policy",
]
