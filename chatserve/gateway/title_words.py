"""What the model is asked for a title with, and what of its reply is one.

Owns the words of the question and the marks of a title that is of use: short, one phrase, of words
that belong to the conversation. A small model often says something else, a sentence of the answer
or a part of the question; the first words of a conversation are a better title than those. There
are no lists of words, so that all languages are judged alike.
"""

import re
import unicodedata
from difflib import SequenceMatcher

QUESTION = "Give this conversation a short title that names its topic."
BEGINNING = "Topic:"
"""The reply's first word is put into the model's mouth: small ones would else answer on."""

MAX_CHARS = 60
_MAX_WORDS = 8
_MAX_CHARS_SEARCHED = 20_000

_LABEL = re.compile(r"^\W*(?:conversation\s+)?(?:title|topic)\s*[:\-]\s*", re.IGNORECASE)
_EDGES = " \t'`*_#<>‘’‚.:;,-"
_QUOTES = re.compile(r"[\"«»“”„]")
_MARKUP = re.compile(r"[<>|`\\]|\*\*|__")
_TWO_SENTENCES = re.compile(r"[.!?;]\s|[。！？；]\s*\S")
_SENTENCE_ENDS = ",.!?;、，。！？；"
_STEM_CHARS = 4


def title_of(reply: str, question: str, answer: str) -> str:
    """Return the title in a model's reply about a conversation, or nothing where there is none."""
    title = _first_phrase(reply)
    if len(title) > MAX_CHARS or len(title.split()) > _MAX_WORDS:
        return ""
    if _MARKUP.search(title) or _TWO_SENTENCES.search(title) or _repeats_question(title):
        return ""
    if _opens(answer, title) or not _is_about(title, question, answer):
        return ""
    return title


def _first_phrase(reply: str) -> str:
    """Return the first line that says something, without a label, quotes and marks around it.

    One that ends with a colon says that something else is to come.
    """
    line = next((line for line in reply.splitlines() if line.strip(_EDGES)), "")
    if line.rstrip().endswith((":", "：")):
        return ""
    printable = "".join(char if char.isprintable() else " " for char in line)
    unquoted = _QUOTES.sub("", _LABEL.sub("", printable))
    return " ".join(unquoted.split()).strip(_EDGES)


def _repeats_question(title: str) -> bool:
    """Return whether more than two thirds of a title's words are the question's, in its order.

    Small models put words of their own between. "A title for my essay" is a title all the same.
    """
    words = _words_of(title)
    blocks = SequenceMatcher(None, _words_of(QUESTION), words).get_matching_blocks()
    num_repeated = sum(block.size for block in blocks)
    return num_repeated > 1 and 3 * num_repeated > 2 * len(words)


def _opens(answer: str, title: str) -> bool:
    """Return whether an answer begins with these words as a sentence or a greeting."""
    said = answer.lstrip()
    following = said[len(title) : len(title) + 1]
    return said.casefold().startswith(title.casefold()) and following in _SENTENCE_ENDS


def _is_about(title: str, question: str, answer: str) -> bool:
    """Return whether half of what a title names is in the conversation, some of it in the question.

    The answer alone is no proof: a small model loses its way in it.
    """
    named = [piece for word in re.findall(r"\w+", title) for piece in _pieces(word)]
    asked = question[:_MAX_CHARS_SEARCHED].casefold()
    said = asked + answer[:_MAX_CHARS_SEARCHED].casefold()
    num_known = sum(piece in said for piece in named)
    return any(piece in asked for piece in named) and 2 * num_known >= len(named)


def _pieces(word: str) -> list[str]:
    """Return what to look for of a word: its stem, or its pairs where words are not set apart.

    Short words are of every text and say nothing, unless they are abbreviations or numbers.
    """
    folded = word.casefold()
    if any(unicodedata.east_asian_width(char) == "W" for char in word):
        return [folded[place : place + 2] for place in range(len(folded) - 1)] or [folded]
    if len(word) >= _STEM_CHARS or word[1:].lower() != word[1:] or not word.isalpha():
        return [folded[:_STEM_CHARS]]
    return []


def _words_of(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())
