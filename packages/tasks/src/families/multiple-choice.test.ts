import { measure } from "@periodic-eval/core";
import { evaluationConformance, fakeModel, fakeTokenizer } from "@periodic-eval/testing";
import { describe, expect, it } from "vitest";
import {
  multipleChoiceEvaluation,
  multipleChoiceMetrics,
  type MultipleChoiceOptions,
} from "./multiple-choice.ts";

interface Capital {
  readonly id: string;
  readonly question: string;
  readonly choices: readonly string[];
  readonly answer: number;
}

const capitals: readonly Capital[] = [
  { id: "fr", question: "The capital of France is", choices: ["Paris", "Rome"], answer: 0 },
  { id: "it", question: "The capital of Italy is", choices: ["Paris", "Rome"], answer: 1 },
  { id: "is", question: "The capital of Iceland is", choices: ["Reykjavík", "Bonn"], answer: 0 },
];
const options: MultipleChoiceOptions<Capital> = {
  name: "capitals",
  documents: capitals,
  prompt: ({ question }) => question,
  choices: ({ choices }) => choices,
  gold: ({ answer }) => answer,
};
/** Log-likelihood of each choice, for every question. */
const scripted = (nats: Readonly<Record<string, number>>) =>
  fakeModel({ logLikelihood: (_, choice) => nats[choice] ?? null });
const nats = { " Paris": -4, " Rome": -3.9, " Reykjavík": -9, " Bonn": -5 };

describe("choices that continue a prompt", () => {
  for (const check of evaluationConformance(() => ({
    evaluation: multipleChoiceEvaluation(options),
    model: fakeModel(),
  })))
    it(check.name, check.run);

  it("are compared by sum, by code point and by byte", async () => {
    const evaluation = multipleChoiceEvaluation({
      ...options,
      metrics: (kit) => ({
        ...multipleChoiceMetrics(kit),
        acc_bytes: kit.rate(({ correctBytes }) => correctBytes),
      }),
    });
    const { snapshot, rows } = await measure(evaluation, scripted(nats));
    // The sums predict Rome, Rome, Bonn: 1 of 3 is correct. Per code point, −4/5 and −3.9/4, −9/9 and −5/4 predict Paris, Paris,
    // Reykjavík: 2 of 3. Reykjavík has 10 bytes: −9/10 per byte.
    expect(snapshot.metrics["acc"]).toMatchObject({ value: 1 / 3, n: 3, estimand: "given_questions" });
    expect(snapshot.metrics["acc_norm"]).toMatchObject({ value: 2 / 3 });
    expect(snapshot.metrics["acc_bytes"]).toMatchObject({ value: 2 / 3 });
    expect(snapshot.primary_metric).toBe("acc");
    expect(rows.find(({ id }) => id === "is")).toEqual({
      id: "is",
      item: "is",
      groups: [],
      gold: [0],
      status: "scored",
      nats: [-9, -5],
      // A token is a byte, including the space.
      tokens: [11, 5],
      isGreedy: [null, null],
      truncatedTokens: 0,
      predicted: 1,
      correct: false,
      predictedNorm: 0,
      correctNorm: true,
      predictedBytes: 0,
      correctBytes: true,
    });
    expect(snapshot).toMatchObject({ correct: 1, total: 3, template_failures: 0, truncated: 0 });
  });

  it("have metrics for the certainty of the correct answer", async () => {
    const { snapshot } = await measure(multipleChoiceEvaluation(options), scripted(nats));
    // −4, −3.9, −9; margins −0.1, 0.1, −4; 1 / (1 + e^0.1), 1 / (1 + e^−0.1), 1 / (1 + e^4).
    expect(snapshot.metrics["gold_log_prob"]!.value).toBeCloseTo(-16.9 / 3, 12);
    expect(snapshot.metrics["gold_margin"]!.value).toBeCloseTo(-4 / 3, 12);
    expect(snapshot.metrics["gold_prob"]!.value).toBeCloseTo((1 + 1 / (1 + Math.exp(4))) / 3, 12);
  });

  it("can include several correct ones, and have custom metrics", async () => {
    const evaluation = multipleChoiceEvaluation({
      ...options,
      documents: capitals
        .slice(0, 1)
        .map((document) => ({ ...document, choices: ["Paris", "Rome", "Bonn"] })),
      gold: () => [0, 1],
      metrics: (kit) => ({ acc: multipleChoiceMetrics(kit)["gold_prob"]! }),
    });
    const model = scripted({ " Paris": Math.log(0.1), " Rome": Math.log(0.2), " Bonn": Math.log(0.3) });
    const { snapshot, rows } = await measure(evaluation, model);
    // The two correct choices have 0.3 of the total probability 0.6.
    expect(snapshot.metrics["acc"]!.value).toBeCloseTo(0.5, 12);
    expect(Object.keys(snapshot.metrics)).toEqual(["acc"]);
    expect(rows[0]).toMatchObject({ predicted: 2, correct: false });
  });

  it("predict the first choice if scores are equal", async () => {
    const { rows } = await measure(multipleChoiceEvaluation(options), fakeModel({ logLikelihood: () => -1 }));
    expect(rows.map((row) => (row as unknown as { predicted: number }).predicted)).toEqual([0, 0, 0]);
  });
});

it("reports metrics for groups of documents", async () => {
  const evaluation = multipleChoiceEvaluation({
    ...options,
    by: ({ id }) => (id === "is" ? null : ["eu", "founder"]),
  });
  const { snapshot } = await measure(evaluation, scripted(nats));
  expect(snapshot.metrics["acc/eu"]).toMatchObject({ value: 1 / 2, n: 2 });
  expect(snapshot.metrics["acc/founder"]).toMatchObject({ n: 2 });
});

it("counts chats that cannot be rendered, and truncated prompts", async () => {
  const chat = multipleChoiceEvaluation({
    ...options,
    delimiter: "",
    prompt: ({ question }) => ({ messages: [{ role: "user", content: question }] }),
  });
  const tokenizer = fakeTokenizer({ failsOn: ([turn]) => turn!.content.includes("Italy") });
  const { snapshot, rows } = await measure(chat, fakeModel({ tokenizer }));
  expect(snapshot).toMatchObject({ total: 2, template_failures: 1 });
  expect(snapshot.metrics["acc"]).toMatchObject({ n: 2 });
  expect(rows.find(({ id }) => id === "it")).toMatchObject({
    reason: "the template raised an exception",
    nats: null,
  });
  expect(snapshot.provenance.evaluation).toMatchObject({
    delimiter: "",
    example_prompt: expect.stringContaining("<|assistant|>") as unknown,
  });
  const short = await measure(multipleChoiceEvaluation(options), fakeModel({ contextLength: 16 }));
  expect(short.snapshot).toMatchObject({ truncated: 3, total: 3 });
});

describe("invalid options and data", () => {
  it("rejects a diverged model", async () => {
    const model = scripted({ " Paris": NaN });
    await expect(measure(multipleChoiceEvaluation(options), model)).rejects.toThrow(
      /question (fr|it): got log-probabilities \[NaN, /,
    );
  });

  const refused: readonly (readonly [string, object, string])[] = [
    [
      "no gold",
      { gold: 0 },
      "multipleChoiceEvaluation options.gold: got 0, expected a function of a document",
    ],
    ["an unknown option", { delimeter: "" }, 'Did you mean "delimiter"?'],
  ];
  it.each(refused)("rejects %s", (_, changes, message) => {
    expect(() => multipleChoiceEvaluation({ ...options, ...changes })).toThrow(message);
  });

  const wrong: readonly (readonly [string, Partial<MultipleChoiceOptions<Capital>>, string])[] = [
    ["an answer that is not a choice", { gold: () => 2 }, "gold [2] for 2 choices"],
    ["no answer", { gold: () => [] }, "gold [] for 2 choices"],
    ["no choices", { choices: () => [] }, "choices []"],
    ["an empty choice", { choices: () => ["a", ""] }, 'choices ["a",""]'],
  ];
  it.each(wrong)("rejects %s", async (_, changes, message) => {
    const evaluation = multipleChoiceEvaluation({
      ...options,
      documents: capitals.slice(0, 1),
      ...changes,
    });
    await expect((async () => evaluation.items(fakeModel()))()).rejects.toThrow(
      `capitals document "fr": got ${message}`,
    );
  });
});
