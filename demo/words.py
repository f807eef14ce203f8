"""The words the stories and conversations are made of."""

GIRLS = """Lily Mia Anna Emma Sara Nora Ella Ruby Rosa Zoe Maya Lucy Alice Clara Eva Grace Hana Ida Jane Kate
Lena Molly Nina Olga Polly Sofia Tina Vera Wendy Amy""".split()
BOYS = """Tom Ben Max Sam Leo Jack Tim Finn Noah Oscar Paul Adam Alex Carl Dan Emil Fred Gus Hugo Ivan Jim Karl
Luke Mark Nick Otto Peter Ray Theo Will""".split()
PETS = """Pip Dot Momo Bella Toto Biscuit Pebble Button Hazel Nutmeg Clover Pepper Daisy Socks Honey Coco
Ziggy Fluffy Bubbles Sunny""".split()

ANIMALS = """rabbit fox bear mouse squirrel duck frog hedgehog owl kitten puppy turtle deer otter beaver
lamb pony goose badger mole sparrow penguin goat piglet""".split()
PEOPLE = """baker farmer teacher gardener fisherman painter sailor doctor carpenter shepherd tailor
librarian miller potter postman cook""".split()
KIND = "kind gentle brave clever cheerful curious friendly quiet happy funny polite patient".split()
SIZE = "little small tiny big tall young old".split()
COLOURS = "red blue green yellow orange purple pink white black brown golden silver grey".split()
TOYS = """ball kite doll drum boat puzzle bucket book hat scarf whistle lantern box bell basket flute ring
key cup blanket map pencil teapot balloon umbrella""".split()
LOOKS = "shiny soft round new old pretty bright wooden lovely warm".split()
PLACES = """park|forest|garden|market|river|lake|beach|hill|meadow|farm|school|library|bridge|village|pond|old mill|
field|castle|harbour|mountain""".replace("\n", "").split("|")
SPOTS = """under the bed|behind the door|in the tall grass|under a big tree|near the river|behind the shed|
in the kitchen|next to a grey stone|under the bridge|on the top shelf|in the cellar|beside the well|
between two bushes|on the roof|in the boat|behind the oak tree""".replace("\n", "").split("|")
FOODS = """apple pear cookie cake sandwich carrot berry muffin banana pie plum peach pancake bun cherry
orange""".split()
FRUIT = "apple carrot berry banana plum peach cherry orange lemon".split()
MEALS = "soup bread rice porridge stew salad pasta cheese jam honey".split()
PLANTS = "rose sunflower tulip pumpkin tomato bean daisy lemon apple carrot".split()
GAMES = "hide and seek|tag|a counting game|a guessing game|jump rope|a board game".split("|")
FAMILY_F = "mother grandmother sister aunt".split()
FAMILY_M = "father grandfather brother uncle".split()
FEARS = """the dark|loud thunder|deep water|big dogs|high places|the first day of school|the old cellar|
speaking in front of the class""".replace("\n", "").split("|")
SKILLS = """swim|ride a bicycle|read|sing|whistle|skate|draw a horse|bake bread|climb a tree|dance|tie a knot|
play the flute""".replace("\n", "").split("|")
BUILDS = "treehouse kite boat sandcastle tower wagon birdhouse snowman raft".split()
WEATHER = "sunny rainy windy cloudy snowy foggy warm cold".split()
MORALS = """It is good to share|Friends help each other|It is important to tell the truth|Small things can make a
big difference|It is never too late to say sorry|Being brave does not mean being without fear|
With patience, everything grows|Kind words cost nothing|It is better to try than to give up|
A problem is smaller when you share it|Listening is a way to help""".replace("\n", " ").replace("| ", "|").split("|")

THING_COLOURS = {
    "the sky": "blue", "grass": "green", "snow": "white", "the sun": "yellow", "a banana": "yellow",
    "a strawberry": "red", "an orange": "orange", "a carrot": "orange", "coal": "black", "milk": "white",
    "a lemon": "yellow", "a leaf": "green", "blood": "red", "chocolate": "brown", "a frog": "green",
    "an elephant": "grey", "a crow": "black", "a cherry": "red", "the sea": "blue", "a pumpkin": "orange",
    "a pea": "green", "a tomato": "red", "wood": "brown", "a flamingo": "pink", "a polar bear": "white",
    "a cucumber": "green", "a mouse": "grey", "honey": "golden", "rice": "white", "the night": "black",
}
SOUNDS = {"cow": "moo", "dog": "woof", "cat": "meow", "duck": "quack", "sheep": "baa", "pig": "oink",
          "horse": "neigh", "frog": "ribbit", "owl": "hoot", "bee": "buzz", "mouse": "squeak",
          "lion": "roar", "snake": "hiss", "bird": "tweet", "rooster": "cock-a-doodle-doo"}
BABIES = {"cow": "calf", "dog": "puppy", "cat": "kitten", "duck": "duckling", "sheep": "lamb", "pig": "piglet",
          "horse": "foal", "frog": "tadpole", "goose": "gosling", "bear": "cub", "hen": "chick",
          "goat": "kid", "deer": "fawn", "kangaroo": "joey"}
HOMES = {"bee": "hive", "bird": "nest", "rabbit": "burrow", "horse": "stable", "fox": "den", "spider": "web",
         "fish": "river or in the sea", "pig": "sty", "dog": "kennel", "bear": "cave", "squirrel": "tree"}
LEGS = {"dog": 4, "cat": 4, "bird": 2, "spider": 8, "ant": 6, "horse": 4, "bee": 6, "snake": 0, "fish": 0,
        "cow": 4, "duck": 2, "butterfly": 6, "table": 4, "rabbit": 4, "hen": 2, "worm": 0}
OPPOSITES = """big small|hot cold|up down|day night|happy sad|fast slow|old new|open closed|wet dry|bright dark|
full empty|high low|long short|early late|left right|heavy light|loud quiet|hard soft|near far|in out|
rich poor|young old|clean dirty|good bad|black white|first last|thick thin|warm cool|strong weak|easy difficult|
sweet sour|true false|begin end|push pull|win lose|yes no""".replace("\n", "").split("|")
JOBS = {"baker": "bakes bread and cakes", "farmer": "grows food and looks after animals",
        "teacher": "helps children to learn", "doctor": "helps people who are ill",
        "sailor": "works on a ship", "painter": "paints pictures", "gardener": "takes care of plants",
        "tailor": "makes and mends clothes", "postman": "brings letters", "cook": "makes meals",
        "librarian": "takes care of books", "carpenter": "makes things of wood",
        "pilot": "flies an aeroplane", "shepherd": "looks after sheep", "fisherman": "catches fish"}
SENSES = {"see": "eyes", "hear": "ears", "smell": "nose", "taste": "tongue", "touch things": "hands",
          "walk": "legs", "chew": "teeth", "breathe": "lungs", "think": "brain"}
SHAPES = {"triangle": "three", "square": "four", "rectangle": "four", "pentagon": "five", "hexagon": "six"}
SIZES = ["ant", "bee", "mouse", "frog", "rabbit", "cat", "dog", "sheep", "pig", "horse", "elephant", "whale"]
USES = {"a spoon": "to eat soup", "an umbrella": "to stay dry in the rain", "a pencil": "to write and draw",
        "a broom": "to sweep the floor", "a key": "to open a lock", "a clock": "to tell the time",
        "a bed": "to sleep", "a lamp": "to make light", "a knife": "to cut food", "a cup": "to drink",
        "a map": "to find the way", "soap": "to wash our hands", "a needle": "to sew", "a book": "to read",
        "a boat": "to cross the water", "a towel": "to get dry", "a ladder": "to climb up"}
FACTS = {
    "Where does milk come from?": "Milk comes from cows.",
    "Where does honey come from?": "Honey comes from bees.",
    "Where do eggs come from?": "Eggs come from hens.",
    "Where does wool come from?": "Wool comes from sheep.",
    "What is bread made of?": "Bread is made of flour, water and salt.",
    "What is ice?": "Ice is frozen water.",
    "What is snow?": "Snow is frozen water that falls from the clouds.",
    "What is a rainbow?": "A rainbow is a band of colours in the sky. It comes from sun and rain.",
    "Why do we sleep?": "We sleep because our body and our mind need rest.",
    "Why do birds have wings?": "Birds have wings to fly.",
    "What do plants need?": "Plants need water, light and air.",
    "What do rabbits eat?": "Rabbits eat grass and carrots.",
    "What do cows eat?": "Cows eat grass.",
    "What do bees make?": "Bees make honey.",
    "What gives us light during the day?": "The sun gives us light during the day.",
    "What shines at night?": "The moon and the stars shine at night.",
    "How many days are in a week?": "There are seven days in a week.",
    "How many months are in a year?": "There are twelve months in a year.",
    "How many seasons are there?": "There are four seasons: spring, summer, autumn and winter.",
    "How many hours are in a day?": "There are twenty-four hours in a day.",
    "How many minutes are in an hour?": "There are sixty minutes in an hour.",
    "How many fingers are on one hand?": "There are five fingers on one hand.",
    "Which season is the coldest?": "Winter is the coldest season.",
    "Which season is the warmest?": "Summer is the warmest season.",
    "Is the sun hot?": "Yes, the sun is very hot.",
    "Is ice cold?": "Yes, ice is cold.",
    "Is the earth round?": "Yes, the earth is round like a ball.",
    "What is the capital of France?": "The capital of France is Paris.",
    "What is the capital of Italy?": "The capital of Italy is Rome.",
    "What is the capital of Spain?": "The capital of Spain is Madrid.",
    "What is the capital of Germany?": "The capital of Germany is Berlin.",
    "What is the capital of Japan?": "The capital of Japan is Tokyo.",
    "What is the capital of England?": "The capital of England is London.",
    "What is a friend?": "A friend is someone who likes you and helps you.",
    "What is a penstock?": "A penstock is a pipe or gate that controls the flow of water.",
    "What is Penstock?": "Penstock is an open server for language models. I run inside it.",
    "What is a token?": "A token is a small piece of text, such as a word or a part of a word.",
    "What is deep learning?": "Deep learning is a way to teach computers with many examples.",
    "What is a computer?": "A computer is a machine that works with numbers and words.",
    "What is water?": "Water is a clear liquid. People, animals and plants need it.",
}
DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
MONTHS = """January February March April May June July August September October November
December""".split()
NUMBERS = """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen
sixteen seventeen eighteen nineteen twenty""".split()
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
CAN = {"fly": ("bird bee butterfly owl bat", "dog cat pig cow horse"),
       "swim": ("fish duck frog otter whale", "hen spider butterfly"),
       "jump": ("frog rabbit kangaroo cat", "snail worm fish")}
ODD_WORDS = """quantum stock market politics history physics music football chemistry law tax engine galaxy
winner president recipe football weather tomorrow city language code program function poem essay translate
explain define describe compare write list solve prove summary theory planet war internet phone movie
price bank car robot""".split()
