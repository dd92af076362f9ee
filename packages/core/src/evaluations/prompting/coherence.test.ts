import { describe, expect, it } from "vitest";
import { namedStream } from "../../random/streams.ts";
import { textFaults } from "./coherence.ts";

const faultOf = (answer: string) => textFaults([{ question: "?", answer }])[0];

describe("the fault of a text", () => {
  it.each(["", " \n", "...", "!!!!", "\n\n- - -"])("is `empty` for %j", (text) =>
    expect(faultOf(text)).toBe("empty"),
  );

  it.each([
    "the ".repeat(15),
    "I am sorry. ".repeat(8),
    "ACDAC".repeat(12),
    "你好".repeat(30),
    "1\n    ".repeat(40),
  ])("is `repeated` for %j", (text) => expect(faultOf(text)).toBe("repeated"));

  // Answers of SmolLM2-135M with noise of 0.3 and 0.5 standard deviations on its weights, and at a learning rate that destroyed it.
  it.each([
    " extensivelyEnt�mmRoom\n\n Sand eachIO basesAC2qtES",
    "Sher&%& imply<Fig)Evidence<& Chalume& Price<AC",
    "isHamot't)invalid)aboveDotAC<!=ESACIC)EDIT canotot",
    "leth;fmJe;zer;Ham;JJJJ;Dream;Kid;It;SHicken",
  ])("is `incoherent` for %j", (text) => expect(faultOf(text)).toBe("incoherent"));

  it.each([
    "Yes.",
    "42",
    "B",
    "👍",
    "是。",
    "- Salt\n- Rice\n- Water",
    "1. Wash the rice.\n2. Boil it.\n3. Rest.",
    "No, no, no! I said no.",
    "iPhone, YouTube, McDonald's, JavaScript and GitHub are brand names.",
    "Die Rechtsschutzversicherungsgesellschaft zahlt nicht.",
    "すべての人間は、生まれながらにして自由であり、かつ、尊厳と権利とについて平等である。",
    "Все люди рождаются свободными и равными в своем достоинстве и правах.",
    "Use this:\n```js\nconst fooBarBaz = (x) => x?.y!.z;\n```",
    "| Day | Meal |\n|---|---|\n| Mon | Rice |\n| Tue | Soup |",
    "C₆H₁₂O₆ + 6 O₂ → 6 CO₂ + 6 H₂O",
    "Write to a.b@c.de or see https://example.org/aB/cD?e=fG.",
    "[ZLT]",
  ])("is null for %j", (text) => expect(faultOf(text)).toBeNull());

  it("is null without an answer, which is no text", () =>
    expect(textFaults([{ question: "?", answer: null }])).toEqual([null]));
});

describe("words that no other answer has", () => {
  const letters = (at: number) =>
    Array.from({ length: 10 }, (_, word) =>
      Array.from("abcde", (letter, i) => `${letter}${"fghijklmno"[(at * 7 + word * 3 + i * at) % 10]}`).join(
        "",
      ),
    ).join(" ");
  const sentence = (at: number) =>
    `I think that the ${letters(at).slice(0, 5)} is in the garden, and I like it.`;

  it("make an answer incoherent", () => {
    const answers = Array.from({ length: 20 }, (_, at) => ({
      question: `q${at}`,
      answer: at === 3 ? "vqo lmu drape sixteen window purple gnat olio brisk" : sentence(at),
    }));
    const faults = textFaults(answers);
    expect(faults[3]).toBe("incoherent");
    expect(faults.filter((fault) => fault !== null)).toHaveLength(1);
  });

  it("do not count if they recur only in answers to the same question", () => {
    const salad = (at: number) =>
      ["gno", "wem", "lorp", "fid", "tus", "kel", "mip", "sov"]
        .map((word) => word + "abcdefghijkl"[at])
        .join(" ");
    const answers = Array.from({ length: 12 }, (_, at) =>
      [0, 1].map(() => ({ question: `q${at}`, answer: salad(at) })),
    ).flat();
    expect(new Set(textFaults(answers))).toEqual(new Set(["incoherent"]));
  });

  it("show nothing in short answers, or beside fewer than ten others", () => {
    const short = [
      "Paris",
      "Rice",
      "Red, green",
      "84",
      "Blue",
      "Cats",
      "Seven",
      "Sleep",
      "Tea",
      "Oak",
      "Iron",
      "Gold",
    ];
    expect(new Set(textFaults(short.map((answer) => ({ question: answer, answer }))))).toEqual(
      new Set([null]),
    );
    const few = Array.from({ length: 10 }, (_, at) => ({ question: `q${at}`, answer: letters(at * 11 + 1) }));
    expect(new Set(textFaults(few))).toEqual(new Set([null]));
  });
});

describe("words in random order", () => {
  const sentences = [
    "You should wash it with warm water and then rest in bed for a day",
    "I would ask a friend for help and then wash it with warm water",
    "My advice is to rest in bed and to drink a lot of warm water",
    "You should drink a lot of water and ask a friend for help",
    "I would not go to work today and I would rest in bed instead",
    "You should not go to work if you have to rest in bed",
  ];
  const answers = Array.from({ length: 18 }, (_, at) => ({
    question: `q${at}`,
    answer: `${sentences[at % 6]}. ${sentences[(at * 5 + 2) % 6]}.`,
  }));
  const next = namedStream("shuffled words");
  const shuffle = (words: readonly string[]) =>
    words
      .map((word) => ({ word, rank: next() }))
      .toSorted((one, other) => one.rank - other.rank)
      .map(({ word }) => word);
  const shuffled = answers.map(({ question, answer }) => ({
    question,
    answer: shuffle(answer.split(" ")).join(" "),
  }));

  it("make all answers incoherent, although each word is one of other answers", () => {
    expect(new Set(textFaults(answers))).toEqual(new Set([null]));
    expect(new Set(textFaults(shuffled))).toEqual(new Set(["incoherent"]));
  });

  it("also make short answers of the same measurement incoherent, but not single words", () => {
    const short = [
      { question: "a", answer: "water bed." },
      { question: "b", answer: "Yes." },
    ];
    expect(textFaults([...shuffled, ...short]).slice(-2)).toEqual(["incoherent", null]);
  });

  it("are not those of lists, whose items have no order", () => {
    const foods = ["salt", "rice", "water", "bread", "beans", "soup", "milk", "eggs", "honey", "tea"];
    const lists = answers.map(({ question }) => ({
      question,
      answer: `- ${shuffle(foods).join("\n- ")}`,
    }));
    expect(new Set(textFaults(lists))).toEqual(new Set([null]));
  });

  // SmolLM2-135M with noise of 0.8 standard deviations on its weights writes such words.
  it("make all answers incoherent if no pair of words recurs, although each word does", () => {
    const syllables = ["ba", "de", "fi", "go", "hu", "ka", "le", "mi", "no", "pu", "ra", "se"];
    const words = syllables.flatMap((one) => syllables.map((other) => `${one}${other}`));
    const random = (at: number) => ({
      question: `q${at}`,
      answer: Array.from({ length: 20 }, () => words[Math.floor(next() * words.length)]).join(" "),
    });
    const answers = Array.from({ length: 24 }, (_, at) => random(at));
    expect(new Set(textFaults(answers))).toEqual(new Set(["incoherent"]));
    expect(new Set(textFaults(answers.slice(0, 12)))).toEqual(new Set([null]));
  });

  it("show nothing if answers have few pairs of words in common", () => {
    expect(new Set(textFaults(shuffled.slice(0, 2)))).toEqual(new Set([null]));
  });
});
