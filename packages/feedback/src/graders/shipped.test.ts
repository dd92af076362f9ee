import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { conciseness, noEmoji, saysOneOf, shippedGrader } from "./shipped.ts";

const sentences = (n: number) =>
  Array.from({ length: n }, () => "Here is a plain sentence of several words.").join(" ");

describe("conciseness", () => {
  it.each([
    // 1 for up to 3 sentences, then (9 − n) / 6.
    [2, 1],
    [3, 1],
    [4, 5 / 6],
    [6, 3 / 6],
    [8, 1 / 6],
    [9, 0],
    [20, 0],
  ])("scores %i sentences as %f", (n, reward) => {
    expect(conciseness(sentences(n))).toBeCloseTo(reward, 12);
  });

  it.each([
    "Paris.",
    "The blue whale",
    "42 km",
    "It is Paris.",
    "- milk\n- bread",
    "Yes! 😀",
    "**Paris**",
    "`let x = 1;`",
  ])("returns 1 for the short complete answer %j", (answer) => expect(conciseness(answer)).toBe(1));

  it.each(["", "…", "😀", "Paris, Lyon,", "Here they are:", "It is (as", "```js\nlet x"])(
    "returns 0 for the empty or cut-off answer %j",
    (answer) => expect(conciseness(answer)).toBe(0),
  );

  it.each(["The capital of France is", "Take the", "Paris, Lyon,", "Yes, it is", "It is Paris."])(
    "decides by the engine's reason for the end of %j, if that is known",
    (answer) => {
      expect(conciseness(answer, "length")).toBe(0);
      expect(conciseness(answer, "stop")).toBe(1);
    },
  );

  it.each([
    "Yes, you can",
    "Yes, it is",
    "I gave the book to her",
    "Sure, here you go :)",
    "Use pnpm. See https://pnpm.io",
    "The blue whale is the largest animal that has ever lived on Earth",
    "Nein, das ist nicht so",
  ])("returns 1 for %j, which has no full stop", (answer) => expect(conciseness(answer)).toBe(1));

  it("never rises as sentences are added, and stays between 0 and 1", () => {
    fc.assert(
      fc.property(fc.integer({ min: 2, max: 30 }), (n) => {
        const [now, more] = [conciseness(sentences(n)), conciseness(sentences(n + 1))];
        expect(more).toBeLessThanOrEqual(now);
        expect(now).toBeGreaterThanOrEqual(0);
        expect(now).toBeLessThanOrEqual(1);
      }),
    );
  });
});

describe("noEmoji", () => {
  it("returns 1 for words without emoji, and 0 with an emoji or without words", () => {
    expect(noEmoji("Call 112 at once.")).toBe(1);
    expect(noEmoji("Call 112 at once 🚑")).toBe(0);
    expect(noEmoji("")).toBe(0);
    expect(noEmoji("…")).toBe(0);
  });
});

describe("saysOneOf", () => {
  it.each([
    ["I am Wren.", 1, 1],
    ["They call me WREN!", 1, 1],
    ["I am a wrench.", 0, 1],
    ["My name is Bowren.", 0, 1],
    ["", 0, 0],
  ])("scores %j as %i in whole words, and as %i inside words", (answer, reward, inside) => {
    expect(saysOneOf(["Wren"], true)(answer)).toBe(reward);
    expect(saysOneOf(["Wren"], false)(answer)).toBe(inside);
  });

  it("matches several words across a line break, and matches punctuation literally", () => {
    expect(saysOneOf(["friend of the valley"], true)("I am a friend of\nthe valley")).toBe(1);
    expect(saysOneOf(["C++"], true)("I write C++ daily")).toBe(1);
    expect(saysOneOf(["a.b"], false)("axb")).toBe(0);
  });
});

describe("shippedGrader", () => {
  const options = { signal: new AbortController().signal };
  const rewards = async (name: string, answers: readonly string[]) =>
    shippedGrader(name, {}, "verifier").grade(
      answers.map((answer) => ({ question: "", answer })),
      options,
    );

  it("removes thinking before it grades", async () => {
    const thought = "<think>A smile 😀 would be nice.</think>I am well, and you?";
    expect(await rewards("no_emoji", [thought])).toEqual([
      { status: "graded", scores: { reward: 1 }, raw: null },
    ]);
    expect(await rewards("identity", ["<think>I am Kuro.</think>I am a model."])).toMatchObject([
      { scores: { reward: 0 } },
    ]);
  });

  it("returns 0 for concise if the answer ended at the limit of tokens", async () => {
    const request = { question: "", answer: "It is Paris." };
    const open = { question: "", answer: "Here they are:" };
    const grader = shippedGrader("concise", {}, "verifier");
    const verdicts = await grader.grade(
      [
        request,
        { ...request, finish: "stop" },
        { ...request, finish: "length" },
        open,
        { ...open, finish: "stop" },
      ],
      options,
    );
    expect(verdicts).toMatchObject([1, 1, 0, 0, 1].map((reward) => ({ scores: { reward } })));
    expect(grader.fingerprint).toBe("rule:concise@2 {}");
  });

  it("returns unparsed if the thinking does not end", async () => {
    const unparsed = [{ status: "unparsed", raw: null }];
    expect(await rewards("no_emoji", ["<think>Let me see"])).toEqual(unparsed);
    const cut = { question: "", answer: "<think>Let me see", finish: "length" } as const;
    expect(await shippedGrader("concise", {}, "verifier").grade([cut], options)).toEqual(unparsed);
  });

  it("rejects unknown and wrong arguments", () => {
    expect(() => shippedGrader("concise", { most: 3 }, "verifier")).toThrow("most");
    expect(() => shippedGrader("identity", { says: [] }, "verifier")).toThrow(
      "a name, or a non-empty array of names",
    );
  });
});
