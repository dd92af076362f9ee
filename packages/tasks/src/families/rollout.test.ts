import { measure, PeriodicCallback, withSession, type EvaluableModel } from "@periodic-eval/core";
import { nestedSubset } from "@periodic-eval/core/evaluations";
import { evaluationConformance, fakeModel, fakeTokenizer, memoryStore } from "@periodic-eval/testing";
import { describe, expect, it } from "vitest";
import { rolloutEvaluation, type RolloutOptions } from "./rollout.ts";

interface Sum {
  readonly id: string;
  readonly question: string;
  readonly answer: string;
}

const sums: readonly Sum[] = [
  { id: "a", question: "1+1=", answer: "2" },
  { id: "b", question: "2+2=", answer: "4" },
  { id: "c", question: "3+3=", answer: "6" },
  { id: "d", question: "4+4=", answer: "8" },
];
const asking = {
  name: "sums",
  documents: sums,
  prompt: ({ question }: Sum) => question,
  maxNewTokens: 4,
};
const options: RolloutOptions<Sum> = {
  ...asking,
  clean: (text) => text.trim(),
  check: ({ answer }, text) => text === answer,
};
const replies: Readonly<Record<string, string>> = { "1+1=": " 2", "2+2=": "5", "3+3=": "6 ", "4+4=": "7" };
const scripted = () => fakeModel({ reply: (prompt) => replies[prompt] ?? null });

describe("a rollout that is checked", () => {
  for (const check of evaluationConformance(() => ({
    evaluation: rolloutEvaluation(options),
    model: scripted(),
  })))
    it(check.name, check.run);

  it("cleans and checks completions, and counts correct ones", async () => {
    const { snapshot, rows } = await measure(rolloutEvaluation(options), scripted());
    // 2 and 6 are correct among 2, 5, 6 and 7.
    expect(snapshot.metrics["accuracy"]).toMatchObject({ value: 0.5, n: 4, higher_is_better: true });
    expect(rows.find(({ id }) => id === "a#0")).toEqual({
      id: "a#0",
      item: "a",
      groups: [],
      sample: 0,
      status: "generated",
      text: " 2",
      finish: "stop",
      promptTokens: 4,
      truncatedTokens: 0,
      cleaned: "2",
      score: true,
    });
    expect(snapshot).toMatchObject({ num_samples: 4, scored: 4, overflows: 0, at_max_new_tokens: 0 });
  });

  it.each([
    ["undefined", undefined],
    ["a number", 2],
  ])("throws for a clean that returns %s, which no answer equals", async (_, cleaned) => {
    const evaluation = rolloutEvaluation({ ...options, clean: () => cleaned as never });
    await expect(measure(evaluation, scripted())).rejects.toThrow(
      /rolloutEvaluation options\.clean for row "\w#0": got (undefined|2), expected a string/,
    );
  });

  it.each([
    ["a promise", async () => ({}), "got a promise"],
    ["an array", () => [], "got [], expected an object of metrics by name"],
    ["a boolean", () => true, "got true, expected an object of metrics by name"],
  ])("throws for metrics that are %s, instead of results without metrics", async (_, metrics, message) => {
    const evaluation = rolloutEvaluation({ ...options, metrics: metrics as never });
    await expect(measure(evaluation, scripted())).rejects.toThrow(message);
  });

  it("scores kept rows again without a model", async () => {
    const rows = (await measure(rolloutEvaluation(options), scripted())).rows as never;
    const strict = rolloutEvaluation({ ...options, clean: (text) => text });
    const again = await strict.grade!(rows, { signal: new AbortController().signal });
    // " 2" and "6 " are no longer correct.
    expect(again.map(({ score }) => score)).toEqual([false, false, false, false]);
  });

  it("is measured by a callback in a session", async () => {
    const store = memoryStore();
    const callback = new PeriodicCallback(rolloutEvaluation(options), { schedule: [] });
    await withSession(
      { run: store, model: scripted(), phase: "p", maxSteps: 1, callbacks: [callback], loggers: [] },
      (session) => session.begin(),
    );
    const [start] = await store.list();
    expect(start).toMatchObject({ evaluation: "sums", metrics: { accuracy: { value: 0.5 } } });
  });
});

describe("a rollout that is sampled and scored", () => {
  const lengths = rolloutEvaluation({
    name: "lengths",
    documents: sums.map(({ id, question }) => ({ id, question, kind: id < "c" ? "small" : "large" })),
    prompt: ({ question }) => ({ messages: [{ role: "user", content: question }] }),
    maxNewTokens: 12,
    temperature: 1,
    samplesPerPrompt: 3,
    score: (_, text) => text.length,
    by: ({ kind }) => kind,
    prefix: "val_",
  });
  for (const check of evaluationConformance(() => ({ evaluation: lengths, model: fakeModel() })))
    it(check.name, check.run);

  it("records a row per sample, averages over questions and groups, and prefixes metric names", async () => {
    const { snapshot, rows } = await measure(lengths, fakeModel());
    expect(rows.map(({ id }) => id).toSorted()).toEqual(
      ["a", "b", "c", "d"].flatMap((id) => [0, 1, 2].map((sample) => `${id}#${sample}`)),
    );
    const texts = rows as unknown as readonly { readonly text: string }[];
    const mean = texts.reduce((sum, { text }) => sum + text.length, 0) / 12;
    expect(new Set(texts.map(({ text }) => text)).size).toBeGreaterThan(6);
    expect(snapshot.metrics["val_score"]).toMatchObject({ value: mean, n: 12, estimand: "over_questions" });
    expect(Object.keys(snapshot.metrics).toSorted()).toEqual([
      "val_score",
      "val_score/large",
      "val_score/small",
    ]);
    expect(snapshot.primary_metric).toBe("val_score");
  });
});

describe("several scores of one completion", () => {
  const both = rolloutEvaluation({
    ...asking,
    score: ({ answer }, text) => ({ strict: text === answer, loose: text.includes(answer) }),
    metrics: ({ rate }) => ({
      strict: rate(({ score }) => score && score.strict),
      loose: rate(({ score }) => score && score.loose),
    }),
  });

  it("become separate metrics", async () => {
    const { snapshot } = await measure(both, scripted());
    // " 2" and "6 " contain the answer but do not equal it.
    expect(snapshot.metrics["strict"]).toMatchObject({ value: 0 });
    expect(snapshot.metrics["loose"]).toMatchObject({ value: 0.5 });
  });

  it("require the option `metrics`", async () => {
    const without = rolloutEvaluation({ ...asking, score: () => ({ strict: true }) });
    await expect(measure(without, scripted())).rejects.toThrow(
      'rolloutEvaluation options.score for row "a#0": got {"strict":true}, expected a number',
    );
  });
});

it.each([
  ["check", undefined, "got undefined, expected true, false or null"],
  ["check", "yes", 'got "yes", expected true, false or null'],
  ["check", 1, "got 1, expected true, false or null"],
  ["score", undefined, "got undefined, expected a number, or null"],
  ["score", "yes", 'got "yes", expected a number'],
])("rejects a `%s` function that returns %j", async (option, given, says) => {
  const changed = { ...asking, [option]: () => given } as unknown as RolloutOptions<Sum>;
  await expect(measure(rolloutEvaluation(changed), scripted())).rejects.toThrow(
    `rolloutEvaluation options.${option} for row "a#0": ${says}`,
  );
});

it.each(["clean", "check", "score"])("names task, document and hook if `%s` throws", async (hook) => {
  const cause = new TypeError("undefined has no length");
  const changed = {
    ...asking,
    check: () => true,
    ...(hook === "score" && { check: undefined }),
    [hook]: () => {
      throw cause;
    },
  } as unknown as RolloutOptions<Sum>;
  await expect(measure(rolloutEvaluation(changed), scripted())).rejects.toMatchObject({
    code: "config",
    where: `task "${changed.name}", document "a": ${hook}`,
    got: 'the error "undefined has no length" thrown by your code',
    cause,
  });
});

describe("a prompt that exceeds its budget", () => {
  const long = [...sums, { id: "long", question: "9".repeat(30), answer: "9" }];
  const model = () => fakeModel({ contextLength: 20 });

  it("is reported and not sent to the model", async () => {
    const sent: string[] = [];
    const watched: EvaluableModel = fakeModel({
      contextLength: 20,
      reply: (prompt) => {
        sent.push(prompt);
        return "2";
      },
    });
    const { snapshot, rows } = await measure(rolloutEvaluation({ ...options, documents: long }), watched);
    expect(sent.toSorted()).toEqual(sums.map(({ question }) => question).toSorted());
    expect(rows.find(({ id }) => id === "long#0")).toMatchObject({
      status: "overflow",
      // The context of 20 tokens reserves 4 for new ones.
      reason: "a prompt of 30 tokens, 16 fit",
      promptTokens: 30,
      text: null,
      score: null,
    });
    expect(snapshot).toMatchObject({ overflows: 1, num_samples: 4, scored: 4, status: "complete" });
    expect(snapshot.metrics["accuracy"]).toMatchObject({ n: 4 });
  });

  it("is truncated on the left if `overflow` is left, and its row counts the removed tokens", async () => {
    const prompts: string[] = [];
    const cut = rolloutEvaluation({ ...options, documents: long, overflow: "left" });
    const watched = fakeModel({ contextLength: 20, reply: (prompt) => (prompts.push(prompt), "9") });
    const { snapshot, rows } = await measure(cut, watched);
    expect(prompts).toContain("9".repeat(16));
    expect(rows.find(({ id }) => id === "long#0")).toMatchObject({ truncatedTokens: 14, score: true });
    expect(snapshot).toMatchObject({ overflows: 0, truncated: 1 });
  });

  it("throws before step 1 if no prompt fits, or no token can be generated", async () => {
    const all = rolloutEvaluation({ ...options, documents: long.slice(4) });
    await expect(measure(all, model())).rejects.toThrow(
      /sums prompt: got no document with a usable prompt \("long"/,
    );
    const endless = rolloutEvaluation({ ...options, maxNewTokens: 20 });
    await expect(measure(endless, model())).rejects.toThrow(
      "sums options.maxNewTokens: got 20 beside prompts of up to 4 tokens, for a context of 20 tokens",
    );
  });
});

it("counts chats that cannot be rendered", async () => {
  const tokenizer = fakeTokenizer({ failsOn: ([turn]) => turn!.content === "2+2=" });
  const chat = rolloutEvaluation({
    ...options,
    prompt: ({ question }) => ({ messages: [{ role: "user", content: question }] }),
  });
  const { snapshot } = await measure(chat, fakeModel({ tokenizer }));
  expect(snapshot).toMatchObject({ template_failures: 1, num_samples: 3 });
});

it("measures a model without a tokenizer, without checking lengths", async () => {
  const { tokenizer: _, ...served } = fakeModel({ contextLength: 20, reply: () => "2" });
  const { snapshot, rows } = await measure(rolloutEvaluation(options), served);
  expect(rows[0]).toMatchObject({ promptTokens: null });
  expect(snapshot.provenance.evaluation).toMatchObject({ prompt_budget: null, example_prompt: null });
});

describe("the subset", () => {
  const documents = Array.from({ length: 50 }, (_, at) => ({ id: `d${at}`, question: `${at}`, answer: "" }));
  const of = (n: number) => rolloutEvaluation({ ...options, documents, subsample: { n, seed: 7 } });

  it("is the same at every measurement, contains smaller subsets, and reports its size", async () => {
    const model = scripted();
    const first = (await of(5).items(model)).map(({ id }) => id);
    expect((await of(5).items(model)).map(({ id }) => id)).toEqual(first);
    expect((await of(9).items(model)).slice(0, 5).map(({ id }) => id)).toEqual(first);
    expect([await of(5).length(), await of(90).length()]).toEqual([5, 50]);
    // The seed draws the subset: it is neither the start of the file nor the subset of another seed.
    const places = first.map((id) => Number(id.slice(1)));
    expect(places).not.toEqual([0, 1, 2, 3, 4]);
    expect(places).toEqual(nestedSubset([...documents.keys()], { n: 5, seed: 7 }));
    const other = rolloutEvaluation({ ...options, documents, subsample: { n: 5, seed: 8 } });
    expect((await other.items(model)).map(({ id }) => id)).not.toEqual(first);
  });
});

it("reads documents from a function, with their provenance", async () => {
  const read = rolloutEvaluation({
    ...options,
    documents: async () => ({ documents: sums, provenance: { file: "sums.jsonl" } }),
  });
  const { snapshot } = await measure(read, scripted());
  expect(snapshot.provenance.evaluation).toMatchObject({ documents: { file: "sums.jsonl" } });
  // Another process grades, without a call of `items`.
  const fresh = rolloutEvaluation({
    ...options,
    documents: async () => ({ documents: sums, provenance: null }),
  });
  const [row] = await fresh.grade!(
    [
      {
        id: "a#0",
        item: "a",
        groups: [],
        sample: 0,
        status: "generated",
        text: "2",
        finish: "stop",
        promptTokens: 4,
        truncatedTokens: 0,
      },
    ],
    { signal: new AbortController().signal },
  );
  expect(row!.score).toBe(true);
  await expect(
    fresh.grade!([{ ...row!, item: "z" }], { signal: new AbortController().signal }),
  ).rejects.toThrow('sums row of "z"');
});

describe("invalid options", () => {
  const refused: readonly (readonly [string, object, string])[] = [
    ["an unknown option", { maxNewToken: 3 }, 'Did you mean "maxNewTokens"?'],
    ["no maxNewTokens", { maxNewTokens: undefined }, "rolloutEvaluation options.maxNewTokens: got undefined"],
    ["samples of greedy decoding", { samplesPerPrompt: 2 }, "got 2 at temperature 0"],
    ["a temperature below 0", { temperature: -1 }, "rolloutEvaluation options.temperature: got -1"],
    ["an empty stop string", { stop: [""] }, "rolloutEvaluation options.stop"],
    ["an unknown overflow", { overflow: "right" }, 'expected "report" or "left"'],
    ["neither check nor score", { check: undefined }, "got neither check and score"],
    ["both", { score: () => 1 }, "got both check and score"],
    ["no documents", { documents: "file" }, 'rolloutEvaluation options.documents: got "file"'],
    ["a prompt that is not a function", { prompt: "q" }, 'rolloutEvaluation options.prompt: got "q"'],
  ];
  it.each(refused)("rejects %s", (_, changes, message) => {
    expect(() => rolloutEvaluation({ ...options, ...changes })).toThrow(message);
  });
});
