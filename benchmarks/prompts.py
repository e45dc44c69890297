"""The prompts of the benchmarks that drive an engine step by step.

Owns their texts and the mix of shapes in which a prefix can be shared. Chats are written in ChatML,
the format of the default model. Every prompt is the same in every run.
"""

import random
from collections.abc import Iterator, Sequence

from chatserve.text.tokenizer import Tokenizer

SYSTEM_PROMPT = """\
You are the assistant of the Harbour Street Library, a public library with three branches, a \
mobile van and a reading room for newspapers. You answer questions of members and visitors \
about opening hours, loans, renewals, reservations, fees, rooms, events and the catalogue.

Opening hours: the main building opens at nine on weekdays and at ten on Saturdays, and closes \
at seven. The two smaller branches close at five and stay shut on Mondays. The van stops at \
the market on Tuesdays, at the school on Wednesdays and at the clinic on Fridays, always from \
two until four.

Loans: books may be kept for four weeks, films and records for one week, newspapers not at \
all. A loan can be renewed twice unless somebody else has reserved the item. Members may hold \
twelve items at once, children eight. A late item costs twenty cents a day, never more than \
five euros, and nothing for members under sixteen. Lost items are charged at the price of a \
new copy.

Rooms: the study rooms on the second floor can be booked for two hours a day, the hall \
downstairs for a whole evening by clubs and schools. Food is allowed in the hall only. The \
piano is tuned every spring and may be played before noon.

How to answer: be friendly and brief, two or three sentences unless somebody asks for more. \
Name the branch you mean. Use plain words and no lists. If you do not know something, say so \
and give the telephone number of the desk, which is answered until six. Never guess a date or \
a fee. Do not discuss what other members have borrowed, and never ask for a password. If a \
question has nothing to do with the library, say kindly what you are here for. Answer in the \
language of the question. When a member is upset about a fee, apologise first, explain the \
rule once, and offer to pass the case on to the desk. When somebody asks for a book to read, \
suggest two titles that the library owns, one older and one recent, and say in one sentence \
each why they are worth the time. Thank them.
"""

DESK = "You are the help desk of a small library. Answer in one or two plain sentences. Be exact."
STORY = """\
The ferry left the island at dawn with eleven passengers, two goats and a piano that nobody \
would admit to owning. By the time the lighthouse had sunk behind them the captain knew the \
name of every goat and of most of the passengers. There was a notary who counted the waves, a \
girl with a jar of bees, and a man who had once been told that he looked like a king and had \
dressed accordingly ever since. The piano stood on the foredeck under a sail. Whenever the \
ship rolled it gave a low sound, as if it wished to say something and could not find the word. \
At noon the wind fell. The captain had the boats lowered and the passengers rowed, the king in \
front, the notary keeping count, until the coast came up out of the haze like the back of a \
sleeping animal."""

QUESTIONS = (
    "Hi",
    "When do you open on Saturday?",
    "How do I renew a book, and how often may I do that?",
    "I lost a film that I had borrowed last week. What happens now?",
    "May my daughter, who is nine, have a card of her own?",
    "Wie lange darf ich ein Buch behalten? Grüße aus Köln!",
    "図書館は何時に閉まりますか。短く答えてください。",
    "Где находится читальный зал?",
    "Who owns the copy 👩‍👩‍👧‍👦 of that atlas 🗺️?",
    "Write a function that adds a late fee of 0.20 a day, at most 5.00.",
    "List the branches, one per line, with their closing times.",
    "   Is there   a quiet room?   ",
    "Translate to French: the reading room is on the second floor.",
    "What is seven times eight, and why do you ask me that here?",
)
EDITS = (
    "Could you tell me which of the branches has the largest collection of maps of the coast?",
    "Could you tell me which of the branches has the largest collection of maps of the city?",
    "Could you tell me which of the branches has the oldest collection of maps of the coast?",
    "Could you tell us which of the branches has the largest collection of maps of the coast?",
    "Could you tell me which of the branches has the largest collection of maps of the coast",
    "Would you tell me which of the branches has the largest collection of maps of the coast?",
)
CONVERSATION = (
    ("Good morning! Is the hall free on Friday?", "It is. Which hours do you need?"),
    ("From six to nine, for our chess club.", "Noted: Friday, six to nine, chess club."),
    ("May we bring soup?", "Yes, food is welcome in the hall."),
    ("And can somebody play the piano?", "Only before noon, I am afraid."),
    ("What will it cost us?", ""),
)
TEXTS = (
    "def fib(n):\n    if n < 2:\n        return n\n    return",
    "SELECT name, COUNT(*) FROM loans WHERE",
    "1, 1, 2, 3, 5, 8, 13,",
    "Dear Sir or Madam,\n\n",
    "The quick brown fox jumps over the lazy dog. " * 12,
    "€$£¥ %&/()=?` ^° <html><body>",
)
NUM_REPEATED = 4
CUTS = (1, 2, 15, 16, 17, 31, 32, 33, 48, 63, 64, 65, 96, 128, 160)
"""Where the story is cut, in tokens: each cut is a prefix of the next, many end on a page."""


def chat(tokenizer: Tokenizer, system: str, *messages: str) -> list[int]:
    """Return the prompt that asks for the next answer; the user speaks first and last."""
    text = f"<|im_start|>system\n{system}<|im_end|>\n"
    for index, content in enumerate(messages):
        role = "assistant" if index % 2 else "user"
        text += f"<|im_start|>{role}\n{content}<|im_end|>\n"
    return tokenizer.encode_special(f"{text}<|im_start|>assistant\n")


def user_turn(seed: int, num_words: int) -> str:
    """Return a question that no other seed gives."""
    words = random.Random(seed).choices(SYSTEM_PROMPT.split(), k=num_words)
    return f"{' '.join(words).capitalize()}?"


def mixed_prompts(tokenizer: Tokenizer) -> list[list[int]]:
    """Return 50 prompts: shared system prompts, edits, repeats, growing conversations, cuts."""
    chats = [chat(tokenizer, DESK, question) for question in (*QUESTIONS, *EDITS)]
    story = tokenizer.encode(STORY)
    assert len(story) > CUTS[-1], f"the story has {len(story)} tokens, too few to cut"
    return [
        *chats,
        *chats[:NUM_REPEATED],
        *(chat(tokenizer, SYSTEM_PROMPT, *turns) for turns in _growing(CONVERSATION)),
        *(story[:length] for length in CUTS),
        *(tokenizer.encode(text) for text in TEXTS),
    ]


def _growing(conversation: Sequence[tuple[str, str]]) -> Iterator[list[str]]:
    """Yield the messages as they stand before each answer."""
    messages: list[str] = []
    for question, answer in conversation:
        yield [*messages, question]
        messages += [question, answer]
