"""Long messages: of a mail, a log or meeting notes with a request in it, only the sentences that ask are searched for.

A vector of a whole message is a vector of its chatter. Where people ask is told by the form of a sentence (an order, a
wish, a question) and by its place: at the beginning or the end of the message, or in a paragraph of its own. Quoted
lines of a conversation count only if nothing else is there.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from toolscout.discovery.clauses import MAX_CLAUSES, MIN_TERMS, asks
from toolscout.text import split_words, telling_terms, words_of_servers

LONG = 400
"""A text of several paragraphs with more characters may be a message with a request in it."""
MOSTLY_ASKING = 0.5
"""If the sentences that ask are this share of a message, it is a long request, and is read whole."""
LONGEST = 1_300
"""A message in which nothing asks, or all of it, is read by its beginning and end if it is longer than this."""

_END_CHARACTERS = 600
_SENTENCE = re.compile(r"(?:[^.!?\n]|[.!?](?=\S))+[.!?]?")
_PARAGRAPH = re.compile(r"\n\s*\n")
_QUOTED_LINE = re.compile(r"^[ \t]*>.*$", re.MULTILINE)
_GREETING = re.compile(r"(?:hi|hello|hey|dear|thanks|thank|best|regards|kind|with kind|cheers|sorry)\b", re.IGNORECASE)
_PLAIN = 0.6
_MOST_CHARACTERS = 400
_LEAST_WEIGHT = 2


@dataclass(frozen=True, slots=True)
class _Sentence:
    text: str
    is_end: bool
    """Whether the message begins or ends with it."""
    is_alone: bool
    """Whether it is a paragraph of its own."""

    @property
    def weight(self) -> int:
        """How likely something is asked for with it."""
        if len(self.text) > _MOST_CHARACTERS:
            return 0
        form = 2 if asks(self.text) else 1 if self.text.endswith("?") else 0
        return form + 2 * self.is_alone + self.is_end


def condense(text: str, servers: tuple[str, ...] = ()) -> str:
    """Return what a long message asks for. A short request, or one that asks with most of its text, stays as it is."""
    if len(text) <= (LONG if _PARAGRAPH.search(text) else LONGEST):
        return text
    sentences = list(_sentences(_QUOTED_LINE.sub("", text))) or list(_sentences(text))
    names = words_of_servers(servers)
    weights = [sentence.weight + 2 * (not names.isdisjoint(split_words(sentence.text))) for sentence in sentences]
    first_places = {sentence.text: place for place, sentence in reversed(list(enumerate(sentences)))}.values()
    asking = [place for place in sorted(first_places) if weights[place] >= _LEAST_WEIGHT]
    share = sum(len(sentences[place].text) for place in asking) / len(text)
    if not asking or (share > MOSTLY_ASKING and len(text) <= LONGEST):
        return text if len(text) <= LONGEST else f"{text[:_END_CHARACTERS]}\n{text[-_END_CHARACTERS:]}"
    last = len(sentences) - 1
    best = sorted(asking, key=lambda place: (-weights[place], min(place, last - place)))[:MAX_CLAUSES]
    return "\n".join(sentences[place].text for place in sorted(best))


def _sentences(text: str) -> list[_Sentence]:
    """Return the sentences that say something in words: no greetings, no lines of a log."""
    paragraphs = [
        [part for match in _SENTENCE.finditer(paragraph) if _says_something(part := match[0].strip(" \t\n-*"))]
        for paragraph in _PARAGRAPH.split(text)
    ]
    paragraphs = [paragraph for paragraph in paragraphs if paragraph]
    return [
        _Sentence(
            text=part,
            is_end=(number == 0 and place == 0) or (number == len(paragraphs) - 1 and place == len(paragraph) - 1),
            is_alone=len(paragraph) == 1,
        )
        for number, paragraph in enumerate(paragraphs)
        for place, part in enumerate(paragraph)
    ]


def _says_something(sentence: str) -> bool:
    letters = sum(character.isalpha() or character == " " for character in sentence)
    is_prose = letters > _PLAIN * len(sentence)
    is_greeting = _GREETING.match(sentence) is not None and not asks(sentence)
    return is_prose and not is_greeting and len(telling_terms(sentence)) >= MIN_TERMS
