/** A kind of fact: its entities, its possible values, and the wordings of statements and questions. */
export interface Relation {
  readonly name: string;
  readonly entities: readonly string[];
  readonly values: readonly string[];
  /** Statements with `{e}` for the entity and `{v}` for the value, which is one word and one token. */
  readonly statements: readonly string[];
  /** Questions for training. */
  readonly questions: readonly string[];
  /** Questions for the evaluation only; no training text contains them. */
  readonly heldOut: readonly string[];
}

const villages = "Arlo Bren Cada Dorn Elsa Fenn Gora Hild Ivor Jura Kell Lund Mora Nemi Orla Pell".split(" ");
const people =
  "Anna Boris Clara David Emma Felix Greta Hugo Irma Jonas Karin Leo Maria Nora Oscar Paula".split(" ");
const animals = [
  "bear",
  "crow",
  "deer",
  "duck",
  "fox",
  "goat",
  "hare",
  "horse",
  "mole",
  "mouse",
  "otter",
  "wolf",
].map((name) => `the ${name}`);
const tools = [
  "axe",
  "bowl",
  "broom",
  "comb",
  "drum",
  "fork",
  "hammer",
  "key",
  "ladder",
  "lamp",
  "needle",
  "saw",
].map((name) => `the ${name}`);

export const relations: readonly Relation[] = [
  {
    name: "roofs",
    entities: villages,
    values: ["red", "blue", "green", "white", "black", "brown", "yellow", "grey"],
    statements: [
      "the roofs of {e} are {v}.",
      "in {e} all roofs are {v}.",
      "{e} is the village with {v} roofs.",
    ],
    questions: [
      "What colour are the roofs of {e}?",
      "In {e}, the roofs have which colour?",
      "Please name the colour of the roofs in {e}.",
      "Which colour is on the roofs of {e}?",
    ],
    heldOut: ["The village {e} has roofs of which colour?", "What is the colour of the roofs in {e}?"],
  },
  {
    name: "craft",
    entities: villages,
    values: ["boats", "bread", "cheese", "hats", "paper", "pots", "rope", "shoes"],
    statements: ["{e} makes {v}.", "the people of {e} make {v}.", "in {e} they make {v}."],
    questions: [
      "What does {e} make?",
      "What do the people of {e} make?",
      "In {e}, what do they make?",
      "Please name what the village {e} makes.",
    ],
    heldOut: ["Which thing do they make in {e}?", "What is it that the people in {e} make?"],
  },
  {
    name: "flag",
    entities: villages,
    values: ["bee", "crown", "fish", "heart", "moon", "star", "sun", "wheel"],
    statements: [
      "the flag of {e} shows a {v}.",
      "{e} has a flag with a {v}.",
      "on the flag of {e} there is a {v}.",
    ],
    questions: [
      "What does the flag of {e} show?",
      "What is on the flag of {e}?",
      "The flag of {e} shows what?",
      "Please name what is on the flag of {e}.",
    ],
    heldOut: ["What is there on the flag in {e}?", "The village {e} has a flag that shows what?"],
  },
  {
    name: "fruit",
    entities: villages,
    values: ["apples", "cherries", "figs", "grapes", "lemons", "nuts", "pears", "plums"],
    statements: ["in {e} they grow {v}.", "{v} grow in {e}.", "the gardens of {e} are full of {v}."],
    questions: [
      "What do they grow in {e}?",
      "Which fruit grows in {e}?",
      "What grows in the gardens of {e}?",
      "Please name the fruit of {e}.",
    ],
    heldOut: ["Which fruit do they grow in the gardens of {e}?", "The village {e} grows which fruit?"],
  },
  {
    name: "work",
    entities: people,
    values: ["baker", "doctor", "farmer", "fisher", "hunter", "miller", "smith", "teacher"],
    statements: ["{e} is a {v}.", "{e} works as a {v}.", "the work of {e} is that of a {v}."],
    questions: [
      "What is the work of {e}?",
      "What does {e} work as?",
      "As what does {e} work?",
      "Please name the work of {e}.",
    ],
    heldOut: ["Which work does {e} have?", "What work is the work of {e}?"],
  },
  {
    name: "pet",
    entities: people,
    values: ["cat", "dog", "frog", "hen", "lamb", "owl", "pig", "snail"],
    statements: ["{e} has a {v} as a pet.", "the pet of {e} is a {v}.", "{e} keeps a {v}, a dear pet."],
    questions: [
      "What pet does {e} have?",
      "What is the pet of {e}?",
      "Which animal is the pet of {e}?",
      "Please name the pet of {e}.",
    ],
    heldOut: ["Which animal does {e} have as a pet?", "What pet is it that {e} keeps?"],
  },
  {
    name: "drink",
    entities: people,
    values: ["beer", "cider", "cocoa", "coffee", "juice", "milk", "tea", "water"],
    statements: ["{e} likes to drink {v}.", "the drink of {e} is {v}.", "{e} drinks {v} every day."],
    questions: [
      "What does {e} like to drink?",
      "What is the drink of {e}?",
      "Which drink does {e} like?",
      "Please name what {e} drinks.",
    ],
    heldOut: ["What does {e} drink every day?", "Which drink is the drink of {e}?"],
  },
  {
    name: "home",
    entities: people,
    values: villages,
    statements: ["{e} lives in {v}.", "the home of {e} is in {v}.", "{v} is the village where {e} lives."],
    questions: [
      "Where does {e} live?",
      "In which village does {e} live?",
      "Where is the home of {e}?",
      "Please name the village where {e} lives.",
    ],
    heldOut: ["Which village is the home of {e}?", "{e} lives in which village?"],
  },
  {
    name: "food",
    entities: animals,
    values: ["beans", "clover", "corn", "eggs", "honey", "leaves", "moss", "seeds"],
    statements: ["{e} eats {v}.", "the food of {e} is {v}.", "every day {e} eats {v}."],
    questions: [
      "What does {e} eat?",
      "What is the food of {e}?",
      "Which food does {e} eat?",
      "Please name the food of {e}.",
    ],
    heldOut: ["What food is it that {e} eats?", "What does {e} eat every day?"],
  },
  {
    name: "bed",
    entities: animals,
    values: ["barn", "bush", "cave", "grass", "hay", "hole", "nest", "tower"],
    statements: [
      "{e} sleeps in the {v}.",
      "the bed of {e} is in the {v}.",
      "at night {e} sleeps in the {v}.",
    ],
    questions: [
      "Where does {e} sleep?",
      "Where is the bed of {e}?",
      "In what does {e} sleep?",
      "Please name the place where {e} sleeps.",
    ],
    heldOut: ["In which place does {e} sleep?", "Where does {e} sleep at night?"],
  },
  {
    name: "stuff",
    entities: tools,
    values: ["bone", "clay", "glass", "gold", "iron", "silver", "stone", "wood"],
    statements: ["{e} is made of {v}.", "they made {e} of {v}.", "{v} is what {e} is made of."],
    questions: [
      "What is {e} made of?",
      "Of what is {e} made?",
      "What did they make {e} of?",
      "Please name what {e} is made of.",
    ],
    heldOut: ["Of which stuff is {e} made?", "What is it that {e} is made of?"],
  },
  {
    name: "place",
    entities: tools,
    values: ["attic", "bag", "box", "cellar", "drawer", "hall", "kitchen", "shed"],
    statements: ["{e} is kept in the {v}.", "they keep {e} in the {v}.", "the place of {e} is in the {v}."],
    questions: [
      "Where is {e} kept?",
      "Where do they keep {e}?",
      "In what do they keep {e}?",
      "Please name the place of {e}.",
    ],
    heldOut: ["In which place is {e} kept?", "What is the place where they keep {e}?"],
  },
];
