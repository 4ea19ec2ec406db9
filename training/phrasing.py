"""Requests made by rule from a tool's definition, in the ways that people and agents ask; no query is read here."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from toolscout.text import STOP_WORDS, split_words

_VERBS = frozenset(
    """
    accept access activate add adjust analyze analyse append apply approve archive arrange ask assess assign
    attach authenticate backup block book browse build buy calculate call cancel capture change check classify
    clean clear click clone close collect combine compare compile compose compress compute configure connect
    control convert copy count crawl create cut debug decode decrypt define delete deploy describe design detect
    determine disable discover display download draw drop duplicate edit email enable encode encrypt end enhance
    enrich enumerate estimate evaluate examine execute explain explore export extract fetch fill filter find fix
    follow forecast format forward gather generate get give grant group handle identify import improve index
    initialize insert inspect install interact invite invoke join launch leave like link list load locate lock
    log look make manage map mark match measure merge mint modify monitor move mute navigate normalize notify
    obtain open optimize order organize parse pause perform pin place plan play post predict prepare preview
    print process produce provide provision publish pull purchase push query read recommend record redeem
    refresh register reject release reload remove rename render replace reply report request reserve reset
    resize resolve restart restore resume retrieve retry return review revoke roll rotate run sample save scan
    schedule score scrape search select sell send set share show sign simulate solve sort split start stop store
    stream submit subscribe suggest summarize swap switch sync take tell test toggle track train transcribe
    transfer transform translate trigger trim turn unlock unpin unsubscribe update upgrade upload validate
    verify view visualize vote wait watch write
    """.split()
)
_SAID = {
    "get": ("fetch", "retrieve", "show", "look up", "find", "pull up", "give me", "show me", "check"),
    "fetch": ("get", "retrieve", "pull", "grab", "load"),
    "retrieve": ("get", "fetch", "show me", "find", "pull up", "give me", "look up"),
    "list": ("show", "show me", "show all", "get all", "enumerate", "display", "see", "what are"),
    "search": ("find", "look for", "look up", "query", "hunt for"),
    "find": ("search for", "look for", "locate", "discover"),
    "create": ("make", "add", "set up", "generate", "open", "start", "new"),
    "add": ("insert", "attach", "create", "put", "append"),
    "delete": ("remove", "get rid of", "erase", "drop", "clear"),
    "remove": ("delete", "take out", "drop", "get rid of"),
    "update": ("change", "modify", "edit", "adjust", "revise"),
    "modify": ("change", "update", "edit"),
    "edit": ("change", "modify", "update"),
    "set": ("change", "configure", "define", "adjust"),
    "send": ("deliver", "dispatch", "shoot", "transmit"),
    "read": ("open", "view", "show", "get the content of"),
    "write": ("save", "put", "store"),
    "run": ("execute", "start", "launch", "perform"),
    "execute": ("run", "perform", "carry out"),
    "calculate": ("compute", "work out", "figure out", "determine"),
    "compute": ("calculate", "work out"),
    "generate": ("create", "make", "produce", "write"),
    "convert": ("turn", "transform", "change", "translate"),
    "check": ("verify", "see", "inspect", "confirm", "look at"),
    "analyze": ("examine", "study", "look into", "evaluate", "assess"),
    "verify": ("check", "confirm", "validate"),
    "book": ("reserve", "arrange"),
    "schedule": ("plan", "set up", "arrange", "book"),
    "start": ("begin", "launch", "run"),
    "stop": ("end", "halt", "terminate", "shut down"),
    "download": ("save", "get", "grab"),
    "upload": ("put", "send", "push"),
    "show": ("display", "give me", "tell me"),
    "recommend": ("suggest", "propose"),
    "monitor": ("watch", "track", "keep an eye on"),
    "track": ("follow", "monitor"),
    "provide": ("give me", "get", "tell me"),
    "play": ("start", "listen to"),
    "rename": ("change the name of",),
    "move": ("transfer", "relocate"),
    "copy": ("duplicate", "clone"),
    "describe": ("explain", "show details of", "tell me about"),
    "summarize": ("give a summary of", "sum up"),
}
_NOUNS = {
    "directory": "folder", "folder": "directory", "image": "picture", "picture": "photo", "message": "text",
    "repository": "repo", "repositories": "repos", "documents": "files", "document": "file", "information": "details",
    "details": "information", "current": "latest", "user": "account", "website": "site", "webpage": "web page",
    "stock": "share", "cryptocurrency": "crypto", "configuration": "settings", "database": "db", "issue": "ticket",
    "application": "app", "applications": "apps", "video": "clip", "meeting": "event", "price": "cost",
    "employee": "staff member", "customer": "client", "location": "place", "specified": "given",
    "specific": "particular",
    "statistics": "stats", "movie": "film", "temperature": "heat", "email": "mail", "environment": "env",
    "kubernetes": "k8s", "pull request": "PR", "authentication": "login", "error": "failure", "errors": "failures",
}  # fmt: skip
_LEAD = re.compile(
    r"^(?:(?:this|the|a|an)\s+)?(?:\w+\s+)?(?:tool|command|function|endpoint|api|method|operation|action|service|plugin|"
    r"resource|query|request|utility|app)s?\s+"
    r"(?:(?:that|which|to|for|will|can|is|are|used|be|designed|helps?|allows?|lets?|enables?|returns?|you|users?)\s+)*",
    re.IGNORECASE,
)
_LEAD2 = re.compile(
    r"^(?:use (?:this|it|when)(?: tool)?(?: to| for)?|(?:allows?|lets?|enables?|helps?)"
    r"(?: (?:you|users?|the user|agents?))?(?: to)?"
    r"|(?:it |this )?(?:will |can )?(?:be )?(?:used|responsible) (?:to|for)|you can(?: use)?(?: to)?|to)\s+",
    re.IGNORECASE,
)
_END = re.compile(
    r"(?im)^\s*(?:args?|arguments|parameters|params|returns?|raises|example|examples|usage|input|output|note|notes|"
    r"keyword arguments|required|optional|response)\b.{0,12}?:|\b(?:Args|Returns|Keyword Arguments|Parameters|Required|"
    r"Optional|Raises):"
)
_MARK = re.compile(r"^\s*\[[^\]]{2,60}\]\s*")
_NOTHING = re.compile(r"\s*(?:no description|description not available|n/?a\b|todo\b)", re.IGNORECASE)
_ADDRESSED = re.compile(r"(?:give|show|tell) me\b|what are\b|new\b")
_SENTENCE = re.compile(r"(?<=[.!?。])\s+|\s*\n\s*|(?<=。)")
_TAIL = re.compile(
    r"(?:,|;|\s[-–—]\s|\(|\s+(?:with support|including|such as|based on|by default|along with|if |so that|which |"
    r"where |when |using |via |through |optionally|and returns?|returning))",
    re.IGNORECASE,
)
_ARTICLE = re.compile(r"^(?:all|any|the|a|an|me|some|your|my|available|specific|specified|given)\s+", re.IGNORECASE)
_FRAMES = (
    "{}", "{}", "{}", "{}", "{}.", "please {}", "Please {}.", "can you {}?", "Can you {} for me?", "could you {}",
    "Could you please {}?", "I need to {}", "I need to {}.", "I want to {}.", "i want to {}", "I'd like to {}.",
    "I would like you to {}.", "help me {}", "Help me to {}.", "how do I {}?", "how can I {}", "How to {}?",
    "is there a way to {}?", "I'm trying to {}.", "we need to {}", "Let's {}.", "I have to {} today.",
    "Can I {}?", "I'm looking to {}.", "Is it possible to {}?", "I need your help to {}.", "tool to {}",
    "a tool that can {}", "find a tool to {}", "which tool can {}?", "My boss asked me to {}.", "Go ahead and {}.",
)  # fmt: skip
_ASKED = (
    "{}", "{}", "{}?", "what is the {}?", "What are the {}?", "I'm looking for {}.", "show me the {}", "where is {}",
    "I need {}", "I need information about {}.", "Do you know {}?", "Tell me about {}.", "details on {}",
    "info about {}", "Give me {}.", "I'm interested in {}.", "Any news on {}?", "I want to know the {}.",
    "I'm curious about {}.", "Can you provide me with {}?", "Could you tell me the {}?", "get me {}",
)  # fmt: skip
_CONTEXT = (
    "I'm working on a project.", "I'm planning a trip with my family.", "My team is preparing a report.",
    "I'm a developer building a new app.", "I'm doing research for a presentation.", "We are organizing an event.",
    "I'm new to this.", "I'm in a hurry.", "My friend asked me about this.", "We had a problem this morning.",
    "I'm setting things up for a client.", "I run a small business.", "I'm a student.",
    "As a data analyst I do this often.",
    "I just started my new job.", "It's for a school assignment.", "I'm preparing for tomorrow's meeting.",
    "I am writing a blog post.", "I'm curious.", "Thanks in advance for the help!", "It's quite urgent.",
)  # fmt: skip
_PEOPLE = ("Alice", "John Smith", "Maria Garcia", "Wei Chen", "bob", "Emma", "Dr. Patel", "Lionel", "Anna Kowalska")
_PLACES = ("Paris", "New York", "Tokyo", "Berlin", "London", "San Francisco", "Mumbai", "Chicago", "Brazil", "Germany")
_THINGS = (
    "climate change", "machine learning", "quarterly report", "coffee", "red shoes", "python", "yoga", "solar panels",
    "project alpha", "the great gatsby", "my-app", "invoice 42", "release notes", "prod-cluster", "marketing plan",
    "wireless headphones", "vintage", "basketball", "budget 2024", "onboarding", "test", "demo", "history of rome",
)  # fmt: skip
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def sentences(description: str) -> list[str]:
    """Return the sentences of a description that tell what a tool does, markup and argument lists left out."""
    text = _MARK.sub("", description.replace("**", "").replace("`", "").replace("#", " "))
    if _NOTHING.match(text):
        return []
    cut = _END.search(text)
    if cut and cut.start() > 15:
        text = text[: cut.start()]
    parts = (part.strip(" -*•\t.:").strip() for part in _SENTENCE.split(text[:1500]))
    return [part for part in parts if len(part.split()) >= 2 or (part and not part.isascii())]


def imperative(sentence: str, random: Random) -> str:
    """Turn what a tool does into what somebody wants done: `Lists all pods.` gives `list all pods`."""
    text = sentence.strip().rstrip(".")
    for lead in (_LEAD, _LEAD2, _LEAD2):
        shorter = lead.sub("", text, count=1)
        text = shorter if len(shorter.split()) >= 2 else text
    words = text.split()
    first = words[0].lower().strip(",:")
    base = _base(first)
    if base:
        rest = " ".join(words[1:])
    else:
        base, rest = random.choice(("get", "find", "show", "use", "")), text
        rest = rest[:1].lower() + rest[1:] if rest[1:2].islower() else rest
    cut = _TAIL.search(rest, 12)
    if cut and random.random() < 0.75:
        rest = rest[: cut.start()]
    limit = random.choice((8, 12, 16, 24))
    return " ".join(f"{base} {rest}".split()[:limit])


def noun_phrase(request: str) -> str:
    """Drop the verb of an imperative, and the article after it."""
    verb, _, rest = request.partition(" ")
    found = rest if verb in _VERBS and rest else request
    return _ARTICLE.sub("", _ARTICLE.sub("", found))


def reworded(request: str, random: Random) -> str:
    """Say the verb, and some of the nouns, in other words."""
    verb, _, rest = request.partition(" ")
    if verb in _SAID and random.random() < 0.8:
        verb = random.choice(_SAID[verb])
    words = [_NOUNS[word] if word in _NOUNS and random.random() < 0.5 else word for word in rest.split()]
    return " ".join((verb, *words))


def asked(request: str, random: Random) -> str:
    """Put an imperative into a sentence."""
    frames = _FRAMES[:7] if _ADDRESSED.match(request) else _FRAMES
    return random.choice(frames).format(request)


def wondered(phrase: str, random: Random) -> str:
    """Put a noun phrase into a question or a wish."""
    return random.choice(_ASKED).format(phrase)


def in_context(request: str, random: Random) -> str:
    """Add a sentence that says nothing about the tool, before or after."""
    aside = random.choice(_CONTEXT)
    request = request[:1].upper() + request[1:]
    ended = request if request[-1:] in ".?!" else request + "."
    return f"{aside} {ended}" if random.random() < 0.75 else f"{ended} {aside}"


def filled(request: str, parameters: Mapping[str, Any], required: Sequence[str], random: Random) -> str:
    """Add invented values of one to three parameters."""
    names = [name for name in required if name in parameters] or list(parameters)
    names = random.sample(names, min(len(names), random.choice((1, 1, 2, 3))))
    parts = []
    for name in names:
        said, value = " ".join(split_words(name)), invented(name, parameters[name], random)
        form = random.choice(
            ("with {n} {v}", "for {v}", "for {n} '{v}'", "({n}: {v})", "where the {n} is {v}", '"{v}"', "using {n} {v}",
             "with the {n} '{v}'", "of {v}", "in {v}", "{v}")
        )  # fmt: skip
        parts.append(form.format(n=said, v=value))
    return f"{request.rstrip('.')} {' and '.join(parts) if random.random() < 0.5 else ' '.join(parts)}"


def invented(name: str, schema: object, random: Random) -> str:
    """Make up a value that fits a parameter's name and type."""
    schema = schema if isinstance(schema, dict) else {}
    values = schema.get("enum")
    if isinstance(values, list) and values:
        return str(random.choice(values))
    words, kind = set(split_words(name)), str(schema.get("type") or "")
    if "email" in words:
        return f"{random.choice(_PEOPLE).split()[0].lower()}@example.com"
    if words & {"url", "uri", "link", "website"}:
        return f"https://example.{random.choice(('com', 'org', 'io'))}/{random.choice(_THINGS).replace(' ', '-')}"
    if words & {"date", "day", "start", "end", "from", "since", "until"} and kind != "integer":
        return random.choice(("2024-03-15", "tomorrow", "last week", "January 5, 2023", "2022-11-01", "next Monday"))
    if words & {"city", "location", "country", "place", "address", "region", "destination", "origin"}:
        return random.choice(_PLACES)
    if words & {"path", "file", "filename", "directory", "folder"}:
        return random.choice(("/tmp/notes.txt", "report.pdf", "src/main.py", "~/Documents", "data.csv"))
    if kind in ("integer", "number", "int", "float") or words & {"count", "limit", "number", "amount", "size", "year"}:
        return str(random.choice((1, 2, 3, 5, 10, 12, 20, 42, 75, 100, 250, 2023, 0.5, 3.14, 1000)))
    if kind == "boolean":
        return random.choice(("true", "yes"))
    if words & {"id", "key", "token", "hash", "code", "sku"}:
        size = random.choice((3, 6, 8, 11))
        return "".join(random.choice(_LETTERS + _LETTERS.upper() + "0123456789") for _ in range(size))
    if words & {"name", "user", "username", "author", "artist", "owner", "player", "person"} and random.random() < 0.6:
        return random.choice(_PEOPLE)
    return random.choice(_THINGS)


def keywords(texts: Sequence[str], random: Random) -> str:
    """Pick two to five telling words."""
    found = [word for text in texts for word in split_words(text) if word not in STOP_WORDS and not word.isdigit()]
    found = list(dict.fromkeys(found))[:14]
    if len(found) < 2:
        return ""
    chosen = random.sample(found, min(len(found), random.choice((2, 3, 3, 4, 5))))
    if random.random() < 0.6:
        chosen.sort(key=found.index)
    return " ".join(chosen)


_SHORT_FORMS = {
    "to": "2", "for": "4", "you": "u", "are": "r", "please": "pls", "and": "n", "with": "w/", "what": "wat",
    "your": "ur", "tomorrow": "tmrw", "message": "msg", "make": "mk", "show": "shw", "the": "teh",
}  # fmt: skip


def spoilt(text: str, random: Random) -> str:
    """Misspell one or two of the longer words."""
    words = text.split(" ")
    long = [place for place, word in enumerate(words) if len(word) >= 5 and word.isalpha()]
    for place in random.sample(long, min(len(long), random.choice((1, 1, 2)))):
        word, at = words[place], random.randrange(1, len(words[place]) - 1)
        letter = random.choice(_LETTERS)
        words[place] = random.choice(
            (word[:at] + word[at + 1 :], word[:at] + letter + word[at:], word[:at] + letter + word[at + 1 :],
             word[:at] + word[at + 1] + word[at] + word[at + 2 :])
        )  # fmt: skip
    return " ".join(words)


def hurried(text: str, random: Random) -> str:
    """Write a request as if typed in a hurry: small letters, vowels left out, letters swapped, short forms."""
    words = []
    for word in text.lower().split(" "):
        short = _SHORT_FORMS.get(word.strip(",.!?"))
        if short and random.random() < 0.5:
            words.append(short)
        elif len(word) >= 4 and word.isalpha() and word.isascii() and random.random() < 0.6:
            inner = [at for at in range(1, len(word) - 1) if word[at] in "aeiou"]
            if inner and random.random() < 0.65:
                gone = set(random.sample(inner, random.randint(1, min(2, len(inner)))))
                words.append("".join(letter for at, letter in enumerate(word) if at not in gone))
            else:
                at = random.randrange(1, len(word) - 2) if len(word) > 4 else 1
                words.append(word[:at] + word[at + 1] + word[at] + word[at + 2 :])
        else:
            words.append(word)
    return " ".join(words)


def joined(requests: Sequence[str], random: Random) -> str:
    """Make one request of several needs."""
    ended = [request.strip().rstrip(".?!") for request in requests]
    links = ("Then", "Also,", "Additionally,", "After that,", "Next,", "Finally,", "I also want to know this:", "")
    text = ended[0][:1].upper() + ended[0][1:]
    for request in ended[1:]:
        if random.random() < 0.35:
            text += random.choice((" and ", ", and ", ", then ", "; ")) + request
        else:
            link = random.choice(links)
            text += f". {link} {request}" if link else f". {request[:1].upper()}{request[1:]}"
    return text + "."


def brand(server: str) -> str:
    """Return the telling words of a server's name."""
    last = re.split(r"[_/]", server.lstrip("@"), maxsplit=1)[-1] if server.startswith("@") else server
    words = [word for word in split_words(last) if word not in {"mcp", "server", "api", "io", "ai", "the"}]
    return " ".join(words) or " ".join(split_words(server))


def _base(word: str) -> str:
    if word in _VERBS:
        return word
    candidates = (
        [word[:-1], word[:-2], word[:-3] + "y"] if word.endswith("s") else [word[:-3], word[:-3] + "e"]
        if word.endswith("ing") else []
    )  # fmt: skip
    return next((found for found in candidates if found in _VERBS), "")
