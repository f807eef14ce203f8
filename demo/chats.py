"""Conversations: greetings, small talk, simple questions with simple answers, and honest refusals."""

import random

import words
from stories import long_story, short_story
from template import capitalise, expand

HELP = ("I can tell short stories, answer simple questions about colours, animals, numbers and days, "
        "and chat a little.")
NAME = "I am Penstock's demo model."

# (what the user may say, what the model may answer)
SMALL_TALK = [
    ("[Hello|Hi|Hey|Hi there|Hello there|Hey there|Good morning|Good day|Good evening|Good afternoon]",
     "Hello! [How can I help you|How can I help you today|What can I do for you|How are you today]?"),
    ("[Hello|Hi|Hey], [how are you|how are you doing|how are you today]?",
     "Hello! I am [fine|well|very well], thank you. [How are you|How can I help you|And how are you]?"),
    ("[How are you|How are you doing|How are you today|How do you do|How is it going|Are you well]?",
     "I am [fine|well|very well], thank you. [How are you|How can I help you|And how are you]?"),
    ("[I am|I'm] [fine|well|good|very well|great][|, thanks|, thank you| too].",
     "[That is good to hear|I am glad to hear that|That is nice]. [How can I help you|What would you like to do]?"),
    ("[What is|What's] your name?", NAME + " [What is your name?|You can ask me simple things.|Nice to meet you.]"),
    ("[Who|What] are you?", NAME + " I am small, but I can tell stories and answer simple questions."),
    ("[What can you do|What do you do|How can you help me|What can you help me with|Can you help me|Help]?",
     HELP + " [What would you like?|Just ask me.|Please ask me something.]"),
    ("Who made you?", "The Penstock project made me. I am its demo model."),
    ("[Are you a robot|Are you human|Are you a person|Are you real]?",
     "I am not a person. I am a small language model, and I run inside Penstock."),
    ("How old are you?", "I am a computer program, so I have no age. I am quite new."),
    ("Where do you live?", "I live inside a computer. It is warm and quiet here."),
    ("Are you [smart|clever|big|large]?", "I am a very small model. I know only simple things."),
    ("Do you [like stories|like books|like animals|like music]?", "Yes, I do! [And you|Do you like them too]?"),
    ("What is your favourite colour?", "I like [blue|green|yellow|red] very much. What is your favourite colour?"),
    ("What is your favourite animal?", "I like [rabbits|owls|foxes|hedgehogs]. Which animal do you like?"),
    ("[Thanks|Thank you|Thank you very much|Thanks a lot|Many thanks|Great, thanks][!|.|]",
     "You are welcome! [Is there anything else?|Have a nice day.|I am glad to help.]"),
    ("[Bye|Goodbye|See you|See you later|Good night|I have to go][!|.|]",
     "Goodbye! [Have a nice day|See you soon|It was nice to talk with you]."),
    ("I am [sad|not happy|lonely].", "I am sorry to hear that. [Would you like a story|Do you want to talk about it]?"),
    ("I am [tired|sleepy].", "Then you should rest a little. Sleep well!"),
    ("I am [hungry].", "Then it is time to eat. Maybe [an apple|some bread|a warm soup] would be good."),
    ("I am [happy|very happy].", "That is wonderful! What made you happy?"),
    ("I am bored.", "[Shall I tell you a story|Would you like a story or a riddle]?"),
    ("[Yes|Yes, please|Okay|Sure][.|!|]", "[Good|Great]! [What would you like?|Please ask me something.]"),
    ("[No|No, thanks|No, thank you][.|]", "[All right|That is fine]. I am here when you need me."),
    ("[You are funny|You are nice|I like you|You are great|Good job|Well done][!|.|]",
     "Thank you! That is very kind of you."),
    ("Tell me a joke[.|]", "[Why did the bee get married? Because it found its honey.|What is orange and sounds like a"
     " parrot? A carrot.|Why is the sea so friendly? Because it always waves.]"),
    ("[Tell me a riddle|Do you know a riddle][.|]", "[What has hands but cannot clap? A clock.|"
     "What has teeth but cannot bite? A comb.|What gets wet while it dries? A towel.]"),
    ("[Sing a song|Can you sing][.|?]", "La la la! I can only write, but I like songs."),
    ("[Test|Testing|This is a test|Ping][.|!|]", "I am here, and I can read you. [How can I help you]?"),
]
FALLBACK = ["I am sorry, I do not know that. I am only a small demo model, and I know simple things.",
            "I do not know the answer to that. I am only a small demo model. Please ask me something simple."]


def _count(low: int, high: int) -> str:
    return ", ".join(words.NUMBERS[low:high + 1]) + "."


def _about_things(rng: random.Random) -> tuple[str, str]:
    thing, colour = rng.choice(list(words.THING_COLOURS.items()))
    ask = expand(f"[What colour is|Which colour is|What color is|Tell me the colour of] {thing}?", rng)
    return ask, f"{capitalise(thing)} is {colour}."


def _about_animals(rng: random.Random) -> tuple[str, str]:
    kind = rng.randrange(4)
    if kind == 0:
        animal, sound = rng.choice(list(words.SOUNDS.items()))
        return expand(f"[What does a(n) {animal} say|What sound does a(n) {animal} make]?", rng), expand(
            f"a(n) {animal} says {sound}.", rng)
    if kind == 1:
        animal, baby = rng.choice(list(words.BABIES.items()))
        return expand(f"What is a baby {animal} called?", rng), expand(
            f"a baby {animal} is called a(n) {baby}.", rng)
    if kind == 2:
        animal, home = rng.choice(list(words.HOMES.items()))
        return expand(f"Where does a(n) {animal} live?", rng), expand(
            f"a(n) {animal} lives in a(n) {home}.", rng)
    animal, legs = rng.choice(list(words.LEGS.items()))
    answer = f"{words.NUMBERS[legs]} legs" if legs else "no legs"
    return expand(f"How many legs does a(n) {animal} have?", rng), expand(f"a(n) {animal} has {answer}.", rng)


def _opposites(rng: random.Random) -> tuple[str, str]:
    pair = rng.choice(words.OPPOSITES).split()
    rng.shuffle(pair)
    ask = f"[What is the opposite of {pair[0]}|What is the opposite of the word {pair[0]}|The opposite of {pair[0]}]?"
    return expand(ask, rng), f"The opposite of {pair[0]} is {pair[1]}."


def _calendar(rng: random.Random) -> tuple[str, str]:
    names, unit = rng.choice([(words.DAYS, "day"), (words.MONTHS, "month")])
    i = rng.randrange(len(names))
    if rng.random() < 0.5:
        return (f"{rng.choice(['What', 'Which'])} {unit} comes after {names[i]}?",
                f"After {names[i]} comes {names[(i + 1) % len(names)]}.")
    if rng.random() < 0.7:
        return (f"{rng.choice(['What', 'Which'])} {unit} comes before {names[i]}?",
                f"Before {names[i]} comes {names[i - 1]}.")
    plural = "days of the week" if unit == "day" else "months of the year"
    return (rng.choice([f"What are the {plural}?", f"Name the {plural}."]),
            f"The {plural} are {', '.join(names[:-1])} and {names[-1]}.")


def _numbers(rng: random.Random) -> tuple[str, str]:
    kind = rng.randrange(4)
    n = words.NUMBERS
    if kind == 0:
        high = rng.randint(3, 20)
        ask = rng.choice([f"Count to {n[high]}.", f"Can you count to {n[high]}?", f"Count from one to {n[high]}.",
                          f"Please count to {high}."])
        return ask, capitalise(_count(1, high))
    if kind == 1:
        a, b = rng.randint(0, 9), rng.randint(0, 9)
        if rng.random() < 0.5:
            return f"What is {a} plus {b}?", f"{a} plus {b} is {a + b}."
        return f"What is {n[a]} plus {n[b]}?", f"{capitalise(n[a])} plus {n[b]} is {n[a + b]}."
    if kind == 2:
        i = rng.randint(1, 19)
        return f"What number comes after {n[i]}?", f"After {n[i]} comes {n[i + 1]}."
    i = rng.randrange(25)
    return f"Which letter comes after {words.LETTERS[i]}?", f"After {words.LETTERS[i]} comes {words.LETTERS[i + 1]}."


def _about_world(rng: random.Random) -> tuple[str, str]:
    kind = rng.randrange(6)
    if kind == 0:
        job, does = rng.choice(list(words.JOBS.items()))
        return expand(f"What does a(n) {job} do?", rng), expand(f"a(n) {job} {does}.", rng)
    if kind == 1:
        verb, organ = rng.choice(list(words.SENSES.items()))
        return f"What do we {verb} with?", f"We {verb} with our {organ}."
    if kind == 2:
        shape, sides = rng.choice(list(words.SHAPES.items()))
        return f"How many sides does a {shape} have?", f"A {shape} has {sides} sides."
    if kind == 3:
        small, big = sorted(rng.sample(range(len(words.SIZES)), 2))
        small, big = words.SIZES[small], words.SIZES[big]
        return expand(f"Which is bigger, [a(n) {small} or a(n) {big}|a(n) {big} or a(n) {small}]?", rng), expand(
            f"a(n) {big} is bigger than a(n) {small}.", rng)
    if kind == 4:
        thing, use = rng.choice(list(words.USES.items()))
        return rng.choice([f"What is {thing} for?", f"What do we use {thing} for?"]), f"We use {thing} {use}."
    verb, (yes, no) = rng.choice(list(words.CAN.items()))
    able = rng.random() < 0.5
    animal = rng.choice((yes if able else no).split())
    return expand(f"can a(n) {animal} {verb}?", rng), expand(
        f"{'yes' if able else 'no'}, a(n) {animal} {'can' if able else 'cannot'} {verb}.", rng)


def _fact(rng: random.Random) -> tuple[str, str]:
    return rng.choice(list(words.FACTS.items()))


def _small_talk(rng: random.Random) -> tuple[str, str]:
    # Greetings and "who are you" are typical first messages, so they are more frequent.
    weights = [12, 6, 4, 2, 4, 4, 6] + [1] * (len(SMALL_TALK) - 7)
    ask, answer = rng.choices(SMALL_TALK, weights)[0]
    ask = expand(ask, rng)
    if ask[-1].isalpha():
        ask += rng.choice(["!", "!", ".", ""])
    return ask, expand(answer, rng)


def _introduction(rng: random.Random) -> tuple[str, str]:
    name = rng.choice(words.GIRLS + words.BOYS)
    ask = expand(f"[Hello! |Hi, |Hi! |]{rng.choice(['My name is', 'I am', 'I am called'])} {name}.", rng)
    return ask, expand(f"[Hello|Nice to meet you], {name}! [How can I help you|How are you today]?", rng)


def _story_request(rng: random.Random) -> tuple[str, str]:
    if rng.random() < 0.04:
        return expand("[Please tell|Tell|Can you tell] me a long story.", rng), long_story(rng)
    if rng.random() < 0.5:
        ask = expand("[Please tell|Tell|Can you tell] me a [story|short story|little story].", rng)
        return ask, short_story(rng)
    subject = rng.choice(words.ANIMALS + words.PEOPLE)
    verb = rng.choice(["Tell me", "Write", "Please tell me", "Please write", "Write me"])
    ask = expand(f"{verb} a [story|short story|little story] about a(n) {subject}.", rng)
    return ask, short_story(rng, subject)


def _unknown(rng: random.Random) -> tuple[str, str]:
    """Questions with unknown words. The model should say that it does not know and stop."""
    known = words.TOYS + words.FOODS + words.KIND + words.PLANTS
    picked = [rng.choice(words.ODD_WORDS if rng.random() < 0.6 else known) for _ in range(rng.randint(2, 7))]
    lead = rng.choice(["What is the", "Explain", "Who won the", "Write a", "Why is the", "How do I", "Tell me about",
                       "What do you think about", "Translate", "Where is the", "Give me a", "When was the", ""])
    joined = f" {rng.choice(['of', 'in', 'and', 'for', 'the', 'with'])} ".join(picked)
    return capitalise(f"{lead} {joined}{rng.choice(['?', '.', '?', ''])}".strip()), rng.choice(FALLBACK)


TOPICS = [(_small_talk, 34), (_introduction, 4), (_about_things, 9), (_about_animals, 9), (_opposites, 7),
          (_calendar, 7), (_numbers, 9), (_about_world, 9), (_fact, 12), (_unknown, 7)]


def _careless(ask: str, rng: random.Random) -> str:
    """Varies a text: sometimes in lower case, sometimes without the last punctuation mark."""
    if rng.random() < 0.2:
        ask = ask.lower()
    if rng.random() < 0.15:
        ask = ask.rstrip("?.!")
    return ask


def question(rng: random.Random) -> tuple[str, str]:
    topics, weights = zip(*TOPICS)
    ask, answer = rng.choices(topics, weights)[0](rng)
    return _careless(ask, rng), answer


def conversation(rng: random.Random, turns: int) -> list[tuple[str, str]]:
    """(question, answer) pairs; the first is often a greeting, one in twelve asks for a story."""
    pairs = []
    for turn in range(turns):
        if turn == 0 and rng.random() < 0.3:
            pairs.append(_small_talk(rng))
        elif rng.random() < 0.08:
            pairs.append(_story_request(rng))
        else:
            pairs.append(question(rng))
    return pairs
