"""Simple stories: a hero, a friend, a place, one of a dozen plots, and an ending."""

import random

import words
from template import expand


def _pronouns(prefix: str, girl: bool | None) -> dict:
    forms = {True: ("she", "her", "her"), False: ("he", "him", "his"), None: ("it", "it", "its")}
    he, him, his = forms[girl]
    return {f"{prefix}he": he, f"{prefix}him": him, f"{prefix}his": his}


def _hero(rng: random.Random) -> dict:
    """A child, an animal or a villager. `intro` is what the opening says, `hero` the later name."""
    kind = rng.choices(["child", "animal", "adult"], [6, 3, 2])[0]
    girl = rng.random() < 0.5
    name = rng.choice(words.GIRLS if girl else words.BOYS)
    if kind == "child":
        adjective = rng.choice(["little", "little", "young", "small", rng.choice(words.KIND)])
        intro = f"a(n) {adjective} {'girl' if girl else 'boy'} named {name}"
    elif kind == "animal":
        name = rng.choice(words.PETS)
        adjective = rng.choice(["little", "small", "young", rng.choice(words.KIND)])
        intro = f"a(n) {adjective} {rng.choice(words.ANIMALS)} named {name}"
    else:
        intro = f"a(n) {rng.choice(words.KIND)} {rng.choice(words.PEOPLE)} named {name}"
    return {"hero": name, "intro": intro, **_pronouns("", girl)}


def _friend(rng: random.Random, taken: str) -> dict:
    if rng.random() < 0.55:
        girl = rng.random() < 0.5
        pool = [n for n in (words.GIRLS if girl else words.BOYS) if n != taken]
        name = rng.choice(pool)
        return {"friend": name, "afriend": f"{'a girl' if girl else 'a boy'} named {name}",
                **_pronouns("f", girl)}
    animal = rng.choice(words.ANIMALS)
    adjective = rng.choice(words.KIND + words.SIZE[:3])
    return {"friend": f"the {animal}", "afriend": f"a(n) {adjective} {animal}", **_pronouns("f", None)}


def make_context(rng: random.Random) -> dict:
    """Draws all values that a plot may insert."""
    context = _hero(rng)
    context |= _friend(rng, context["hero"])
    mother = rng.random() < 0.6
    spots = rng.sample(words.SPOTS, 3)
    places = rng.sample(words.PLACES, 2)
    context |= {
        "toy": rng.choice(words.TOYS), "look": rng.choice(words.LOOKS), "colour": rng.choice(words.COLOURS),
        "spot1": spots[0], "spot2": spots[1], "spot3": spots[2], "place": places[0], "place2": places[1],
        "food": rng.choice(words.FOODS), "meal": rng.choice(words.MEALS), "plant": rng.choice(words.PLANTS),
        "fruit": rng.choice(words.FRUIT), "game": rng.choice(words.GAMES),
        "fear": rng.choice(words.FEARS), "skill": rng.choice(words.SKILLS),
        "build": rng.choice(words.BUILDS), "weather": rng.choice(words.WEATHER),
        "moral": rng.choice(words.MORALS), "kind": rng.choice(words.KIND), "animal": rng.choice(words.ANIMALS),
        "parent": rng.choice(words.FAMILY_F if mother else words.FAMILY_M), **_pronouns("p", mother),
        "number": rng.choice(words.NUMBERS[2:8]),
    }
    return context


OPENINGS = [
    "Once upon a time, there was {intro}. {Hero} [lived near the {place}|lived in a small house|liked to laugh"
    "|was very {kind}|loved the {place}|lived with {his} {parent}].",
    "Once upon a time, there lived {intro}. [Every day|Every morning], {hero} went to the {place}.",
    "Once upon a time, in a [small|quiet|green|far] [village|valley|town], there lived {intro}.",
    "Once upon a time, {intro} lived [near the {place}|with {his} {parent}|in a(n) {colour} house].",
    "Once upon a time, there was {intro} who lived near the {place}.",
    "One day, {intro} [went to the {place}|was playing near the {place}|woke up early|sat by the window].",
    "One day, {intro} went to the {place} with {his} {parent}.",
    "One [sunny|rainy|windy|cold|warm|quiet] [morning|day|afternoon], {intro} walked to the {place}.",
    "Long ago, there was {intro}. Everyone in the village [liked|knew] {him}.",
    "There once was {intro}. {Hero} had a(n) {colour} [hat|coat|house|scarf].",
    "In a [small|little|cosy] house near the {place}, there lived {intro}.",
    "It was a {weather} day. {intro} [went to the {place}|looked out of the window|wanted to go outside].",
    "{Hero} was {intro2}. {He} lived near the {place}.",
]

PLOTS = {
    "lost": [
        "{Hero} had a(n) {look} {colour} {toy}. {He} [loved it very much|took it everywhere].",
        "One [day|morning], the {toy} was gone. {Hero} was [very sad|worried].",
        "{He} looked {spot1}, but it was not there. {He} looked {spot2}, but it was not there[| either].",
        "Then {he} met {afriend}. \"[Why are you sad|What is wrong]?\" asked {friend}. \"I lost my {toy},\" said"
        " {hero}. \"[I will help you|Let us look together],\" said {friend}.",
        "They looked {spot3}. There was the {toy}! \"[Thank you|Thank you so much]!\" said {hero}.",
        "[From that day on, {hero} took good care of the {toy}.|{Hero} was happy again.]",
    ],
    "friend": [
        "{Hero} was [lonely|alone] and wanted a friend.",
        "At the {place2}, {he} saw {afriend}. \"Hello,\" said {hero}. \"[Do you want to play|Will you play with me]?\"",
        "\"Yes, [I would like that|please]!\" said {friend}. They played {game} [all day|until the sun went down].",
        "Then {hero} was hungry. {He} had a(n) {food} and gave half of it to {friend}.",
        "\"You are [kind|a good friend],\" said {friend}. {Hero} smiled.",
        "After that day, {hero} was never lonely again.",
    ],
    "stuck": [
        "On the way to the {place2}, {hero} heard a [small|sad|quiet] voice. \"Help! Please help me!\"",
        "{Hero} looked up and saw {afriend} [in a tall tree|on a high wall]. {Fhe} could not come down.",
        "\"[Do not be afraid|Wait for me],\" said {hero}. \"I will [get a ladder|find a rope|call my {parent}].\"",
        "{Hero} [ran|hurried] home and came back [very soon|with {his} {parent}].",
        "[Slowly and carefully|Step by step], {friend} came down. \"Thank you, {hero}!\" said {friend}.",
        "{Hero} was proud. [{He} had been very brave.|It feels good to help.]",
    ],
    "storm": [
        "[Suddenly|Then] the sky turned [grey|dark] and it began to rain. The wind was [strong|cold].",
        "{Hero} ran to a(n) {look} little house. Inside, {he} found {afriend}.",
        "\"[May I stay here|Can I come in]?\" asked {hero}. \"Of course,\" said {friend}. "
        "\"[There is room for two|It is warm in here].\"",
        "They ate {meal} and told each other stories [until the rain stopped|while it rained].",
        "When the sun came back, they saw a [big|beautiful|bright] rainbow over the {place2}.",
        "\"[How beautiful|Look at the colours]!\" said {hero}. They were friends from then on.",
    ],
    "gift": [
        "It was the birthday of {his} {parent}, and {hero} wanted to give {phim} a gift.",
        "{Hero} had no money. \"[What can I do|What shall I give]?\" {he} thought.",
        "{He} went to the {place2} and found {number} [pretty flowers|shiny stones|white shells|golden leaves].",
        "{He} put them in a(n) {colour} box. Then {he} made a(n) {fruit} cake with {friend}.",
        "\"Happy birthday!\" said {hero}. {His} {parent} opened the box and [smiled|laughed with joy].",
        "\"This is the best gift of all,\" said {his} {parent}.",
    ],
    "fear": [
        "{Hero} was afraid of {fear}. {He} did not want to tell anyone.",
        "One evening, {he} told {his} {parent}. \"[Everyone is afraid sometimes|I was afraid too when I was young],\""
        " said {his} {parent}. \"[We can try together|Take my hand].\"",
        "[The next day|So], they tried. {Hero} took a deep breath and [counted to three|closed {his} eyes].",
        "At first it was hard. But [after a while|little by little], {hero} felt better.",
        "\"I did it!\" [said|cried] {hero}. {His} {parent} gave {him} a big hug.",
        "Now {hero} was not so afraid of {fear} anymore.",
    ],
    "seed": [
        "{Hero} found a [tiny|small|strange] seed {spot1}. \"What will it be?\" {he} wondered.",
        "{He} put the seed into the ground and gave it water [every day|every morning].",
        "One day went by. Two days went by. Nothing happened. {Hero} was [sad|not happy].",
        "\"[Be patient|Give it time],\" said {friend}. \"[Good things need time|It is still sleeping].\"",
        "After {number} days, a small green leaf came out. It grew and grew, and it became a big {plant} plant.",
        "{Hero} [danced with joy|was very happy]. {He} gave the first {plant} to {friend}.",
    ],
    "share": [
        "{Hero} and {friend} found a(n) {colour} {toy} {spot1}. They both wanted it.",
        "\"It is mine!\" said {hero}. \"No, it is mine!\" said {friend}. They [pulled and pulled|were very angry].",
        "[Then the {toy} broke|The {toy} fell into the mud]. Both were [sad|quiet].",
        "\"I am sorry,\" said {hero}. \"[I should have shared|I was not kind].\" \"I am sorry too,\" said {friend}.",
        "Together they [fixed the {toy}|made the {toy} clean again]. Then they [played with it together|took turns].",
        "It was much more fun than before.",
    ],
    "journey": [
        "{Hero} wanted to see the {place2}. It was far away, so {he} packed a(n) {food} and some {meal}.",
        "First {he} came to a river. {Afriend} was there. "
        "\"[How can I cross|Can you help me cross] the river?\" asked {hero}. "
        "\"[Step on the stones|There is a bridge behind the trees],\" said {friend}.",
        "Then {he} came to a dark forest. {Hero} sang a song and was not afraid.",
        "At last {he} came to a high hill. {He} climbed [up and up|for a long time].",
        "From the top, {he} could see the {place2}. It was [beautiful|even more beautiful than in {his} dreams].",
        "In the evening, {hero} went home and told {his} {parent} everything.",
    ],
    "noise": [
        "One night, {hero} could not sleep. There was a strange noise {spot1}. Tap, tap, tap.",
        "\"Who is there?\" asked {hero}. Nobody answered. Tap, tap, tap.",
        "{Hero} took a [lamp|candle] and [walked slowly|went on tiptoe]. {He} looked {spot1}.",
        "It was [only|just] {afriend}! \"I am [cold|hungry|lost],\" said {friend}.",
        "{Hero} gave {fhim} some {meal} and a [warm|soft] blanket.",
        "Soon both of them [fell asleep|slept well]. The night was quiet again.",
    ],
    "soup": [
        "{Hero} wanted to make {meal} for all {his} friends, but the pot was [empty|too small].",
        "So {he} asked {friend} for help. {Friend} brought a(n) {food}. A(n) {animal} brought some salt.",
        "{Hero} [stirred|cooked] and tasted. \"[Something is missing|It needs a little more],\" {he} said.",
        "Then {his} {parent} came with fresh {plant} leaves from the garden. Now it was perfect.",
        "Everyone sat [around the table|in a circle] and ate. \"This is delicious!\" said {friend}.",
        "There was enough for everyone.",
    ],
    "build": [
        "{Hero} wanted to build a(n) {build}. {He} worked [all morning|very hard].",
        "But [crash|oh no]! The {build} fell [apart|over]. {Hero} began to cry.",
        "{Friend} came by. \"[Do not give up|Try again],\" said {friend}. \"We can build it together.\"",
        "{Hero} held the wood, and {friend} tied the knots. They worked for {number} hours.",
        "At last the {build} was ready. It was {colour} and [strong|beautiful].",
        "\"[Two can do more than one|We did it],\" said {hero}, and they [laughed|cheered].",
    ],
    "learn": [
        "{Hero} wanted to learn to {skill}. {He} tried [once|one time], but it did not work.",
        "{Friend} watched {him}. \"[It is hard at first|Nobody can do it on the first day],\" said {friend}.",
        "{Hero} tried again the next day, and the day after that. {His} {parent} helped {him}.",
        "After {number} days, {hero} could do it! \"Look! I can {skill}!\" {he} [said|called].",
        "Everyone clapped. {Hero} was [very proud|so happy].",
        "Then {he} taught {friend} to {skill} too.",
    ],
    "found": [
        "At the {place2}, {hero} found a(n) {look} {toy}. It was {colour} and [very pretty|not {his} own].",
        "\"[I want to keep it|It is so pretty],\" {he} thought. Then {he} saw {afriend}. {Fhe} was crying.",
        "\"I lost my {toy},\" said {friend}. \"It was {colour}.\"",
        "{Hero} looked at the {toy} for a moment. Then {he} gave it back.",
        "\"You are honest!\" said {friend}. \"[Let us be friends|Come, we will play together].\"",
        "{Hero} had no {toy}, but {he} had a new friend. That was better.",
    ],
}

ENDINGS = [
    "The end.", "And they [lived|were] happy ever after.", "In the evening, {hero} went home and slept well.",
    "{moral}.", "{Hero} learned something that day. {moral}.", "It was a [good|wonderful|lovely] day.",
    "\"{moral},\" said {his} {parent}. The end.", "",
]
LINKS = ["The next day, {hero} was [awake early|full of joy].", "A week later, something happened.",
         "But the story does not end here.", "Then winter came, and then spring.",
         "On another day, {hero} went to the {place}.", "Many days went by."]


def _opening(rng: random.Random, context: dict) -> str:
    template = rng.choice(OPENINGS)
    intro2 = context["intro"].split(" named ")[0]
    return expand(template, rng, context | {"intro2": intro2})


def _episode(rng: random.Random, context: dict) -> str:
    plot = PLOTS[rng.choice(list(PLOTS))]
    return " ".join(expand(sentence, rng, context) for sentence in plot)


def story(rng: random.Random, subject: str | None = None) -> str:
    """One story of about 120 to 200 tokens, about `subject` (an animal or trade) when given."""
    context = make_context(rng)
    if subject:
        adjective = rng.choice(words.KIND + ["little"])
        context["intro"] = f"a(n) {adjective} {subject} named {context['hero']}"
    parts = [_opening(rng, context), _episode(rng, context), expand(rng.choice(ENDINGS), rng, context)]
    separator = "\n\n" if rng.random() < 0.15 else " "
    return separator.join(part for part in parts if part)


def short_story(rng: random.Random, subject: str | None = None) -> str:
    """The opening, the first and last part of a plot: the length of a chat answer."""
    context = make_context(rng)
    if subject:
        context["intro"] = f"a(n) {rng.choice(words.KIND + ['little'])} {subject} named {context['hero']}"
    plot = PLOTS[rng.choice(list(PLOTS))]
    return " ".join([_opening(rng, context)] + [expand(s, rng, context) for s in plot]
                    + [expand("The end.", rng)])


def long_story(rng: random.Random) -> str:
    """Several episodes with the same hero in numbered chapters: 500 to 1,600 tokens."""
    context = make_context(rng)
    chapters = rng.randint(4, 9)
    parts = []
    for number in range(1, chapters + 1):
        fresh = make_context(rng)
        keep = ("hero", "intro", "he", "him", "his", "parent", "phe", "phim", "phis")
        context = fresh | {key: context[key] for key in keep}
        while context["friend"] == context["hero"]:
            context |= _friend(rng, context["hero"])
        start = _opening(rng, context) if number == 1 else expand(rng.choice(LINKS), rng, context)
        parts.append(f"Chapter {words.NUMBERS[number]}.\n{start} {_episode(rng, context)}")
    return "\n\n".join(parts) + " The end."
