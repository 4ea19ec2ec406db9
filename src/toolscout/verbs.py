"""What a request asks to be done, and what the name of a tool says that it does: verbs in groups.

"Delete a branch" is not `create_branch`, though all its nouns are there. Groups are bits, so that they compare fast.

>>> wanted_action("please delete the branch") == actions("remove_branch")
True
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import islice

from toolscout.text import CONTRASTS, NEGATIONS, QUOTED, STOP_WORDS, split_words

_ACTIONS = (
    "get show view read retrieve fetch display describe see check what list enumerate search find query lookup "
    "discover which who where how tell inspect browse preview",
    "create add make new insert register provision build setup generate",
    "update modify edit change rename patch set adjust replace",
    "delete remove clear drop destroy erase uninstall purge wipe trash discard",
    "send email notify reply forward message",
    "merge",
    "approve accept",
    "reject decline deny unapprove revoke",
    "run execute start launch trigger invoke",
    "stop cancel abort terminate kill halt pause",
    "restart reboot resume retry",
    "move transfer",
    "copy duplicate clone fork",
    "upload push",
    "download pull",
    "export",
    "import",
    "enable activate unlock unblock unmute",
    "disable deactivate lock block mute",
    "archive close resolve",
    "unarchive reopen restore undelete",
    "publish deploy release",
    "unpublish unschedule rollback revert",
    "assign",
    "convert translate transcribe",
)
"""Groups of verbs. A name or a request with a verb of one group does not ask for a verb of another."""
_ACTION_OF = {word: 1 << bit for bit, words in enumerate(_ACTIONS) for word in words.split()}
READ, CREATE, UPDATE, DELETE = (_ACTION_OF[word] for word in ("get", "create", "update", "delete"))
"""The most common actions, as bits."""
_COMPATIBLE = (
    (CREATE, "send run copy upload import convert publish"),
    (UPDATE, "move assign enable disable archive unarchive publish unpublish approve reject restart merge"),
    (READ, "download export convert run"),
    (DELETE, "reject unpublish archive disable stop"),
)
"""An action, and those that may mean the same: `send a message` is `create_message` elsewhere."""
_NOT_OTHER = {bit: bit for bit in _ACTION_OF.values()}
for _action, _words in _COMPATIBLE:
    for _word in _words.split():
        _NOT_OTHER[_action] |= _ACTION_OF[_word]
        _NOT_OTHER[_ACTION_OF[_word]] |= _action
_WEAK = frozenset(
    "new set how who which where tell see check make build change what message email block close lock release import "
    "export query read run start move copy".split()
)
"""Verbs that are often nouns or say little. Another verb of the request counts before them."""
_FIRST_WORDS = 2
_COMPOUND = re.compile(
    r"\b(?:merge|pull|push|change)[\s_-]*requests?\b|\b(?:deploy|release) (?:notes?|keys?)\b", re.IGNORECASE
)
"""Nouns that contain a verb."""
_PHRASES = tuple(
    (re.compile(pattern, re.IGNORECASE), verb)
    for pattern, verb in (
        (r"\bget(?:ting)? rid of\b|\bthrow (?:away|out)\b|\btake (?:down|off|out)\b", "remove"),
        (r"\b(?:take|kick|throw)\b(?:\s+[\w'’-]+){1,5}?\s+(?:off|out)\b", "remove"),
        (r"\b(?:set|spin|stand)\b(?:\s+[\w'’-]+){0,3}?\s+up\b|\b(?:write|jot) down\b", "create"),
        (r"\b(?:switch|turn|shut)\b(?:\s+[\w'’-]+){0,5}?\s+off\b", "disable"),
        (r"\b(?:switch|turn)\b(?: on\b|(?:\s+[\w'’-]+){1,5}?\s+on\b(?=\s*(?:$|[.,;!?]|for\b|in\b|again\b)))", "enable"),
        (r"\bshut(?:\s+[\w'’-]+){0,3}?\s+down\b", "stop"),
        (r"\b(?:look|pull|bring) up\b|\blook (?:at|into)\b|\bgive me the\b|\bhow many\b", "show"),
    )
)
"""Verbs of several words, and the one that means the same."""
_NEGATED_WORD = re.compile(rf"\b(?:{NEGATIONS}|without|not|{CONTRASTS})\s+\w+", re.IGNORECASE)


@lru_cache(maxsize=65_536)
def actions(name: str) -> int:
    """Return what a tool's name says that it does, as bits: READ for `list_issues`, 0 for `weather`.

    If the name begins with a verb, that one decides: `get_set_members` reads.
    """
    words = split_words(_COMPOUND.sub(" ", " ".join(split_words(name))))
    verbs = [_ACTION_OF[word] for word in words if word in _ACTION_OF]
    if verbs and (words[0] in _ACTION_OF):
        return verbs[0]
    bits = 0
    for verb in verbs:
        bits |= verb
    return bits


def other_action(action: int) -> int:
    """Return the actions that contradict one, as bits. 0 contradicts nothing."""
    return ~_NOT_OTHER[action] & (1 << len(_ACTIONS)) - 1 if action else 0


def wanted_action(request: str) -> int:
    """Return the action that a request asks for, or 0. Only its first telling words count: later verbs are content."""
    text = _NEGATED_WORD.sub(" ", QUOTED.sub(" ", request))
    for phrase, verb in _PHRASES:
        text = phrase.sub(verb, text)
    text = _COMPOUND.sub(" ", text)
    words = (word for word in split_words(text) if word in _ACTION_OF or word not in STOP_WORDS)
    verbs = [word for word in islice(words, _FIRST_WORDS) if word in _ACTION_OF]
    telling = [word for word in verbs if word not in _WEAK]
    return _ACTION_OF[(telling or verbs)[0]] if verbs else 0
