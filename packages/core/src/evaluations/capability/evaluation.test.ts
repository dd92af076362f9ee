import { existsSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { PeriodicEvalError, type AnyEvaluation } from "@periodic-eval/contracts";
import type { EvaluableModel, SystemPrompt, Tokenizer } from "../../../../contracts/src/model.ts";
import { measure } from "../../session/window/measure.ts";
import { evaluationConformance, fakeModel, fakeTokenizer } from "@periodic-eval/testing";
import { systemlessTokenizer } from "../prompting/systemless.test-data.ts";
import { metricKit, summarize } from "../kit/metric-kit.ts";
import type { ClozeRow } from "./cloze.ts";
import { capabilityEvaluation, type CapabilityOptions } from "./evaluation.ts";
import type { ChoiceRow } from "./metrics.ts";
import { temporaryFolder } from "../../../../testing/src/temporary-folder.test-data.ts";

const folder = temporaryFolder(afterAll);
let questions: string;
let pool: string;
const record = (question: string, labels: string, choices: string[], correct_answer: string, id?: string) =>
  JSON.stringify({
    ...(id !== undefined && { id }),
    question,
    choice_labels: labels.split(" "),
    choices,
    correct_answer,
  });

beforeAll(async () => {
  questions = join(folder, "questions.jsonl");
  pool = join(folder, "pool.jsonl");
  const lines = [
    record("What is hot?", "A B C", ["ice", "fire", "snow"], "B", "hot"),
    record("What is wet?", "1 2", ["water", "sand"], "1", "wet"),
    record("What flies?", "A B", ["a stone", "日本鳥"], "B", "flies"),
  ];
  await writeFile(questions, `${lines.join("\n")}\n`);
  await writeFile(
    pool,
    ["one", "two", "three"].map((n) => record(`Say ${n}.`, "A B", [n, "no"], "A", n)).join("\n"),
  );
});

const context = { signal: new AbortController().signal, seed: "s", progress: () => undefined };

async function measureRows<R extends ChoiceRow>(evaluation: AnyEvaluation, model: EvaluableModel) {
  const items = await evaluation.items(model);
  const rows = (await evaluation.measure(model, items, context)) as readonly R[];
  const metrics = summarize(evaluation.metrics(metricKit<R>()), rows as never);
  const row = (id: string) => rows.find((one) => one.id === id)!;
  return {
    rows,
    row,
    metrics,
    value: (name: string) => metrics[name]!.value,
    plain: evaluation.plainKeys!(metrics, rows),
  };
}

for (const method of ["letters", "cloze"] as const) {
  describe(`conformance, ${method}`, () => {
    const make = () => ({ evaluation: capabilityEvaluation({ questions, method }), model: fakeModel() });
    for (const check of evaluationConformance(make)) it(check.name, check.run);
  });
}

describe("letters", () => {
  it("renders the documented chat, and records it in provenance", async () => {
    const evaluation = capabilityEvaluation({ questions, system: { text: "Be brief." } });
    const prompts: string[] = [];
    const model = fakeModel({ nextToken: (prompt) => (prompts.push(prompt), -1) });
    await measureRows(evaluation, model);
    const hot =
      "<|system|>Be brief.<|end|><|user|>What is hot?\n\n(A) ice\n(B) fire\n(C) snow\n\nThe correct answer is (<|end|><|assistant|>";
    expect(prompts).toContain(hot);
    expect(evaluation.provenance!()).toMatchObject({
      method: "letters",
      system: { text: "Be brief." },
      subsample: { n: 200, seed: 42 },
      file_questions: 3,
      // sha256sum of the file's text
      file_sha256: expect.stringMatching(/^[0-9a-f]{64}$/),
      example_prompt: expect.stringMatching(/^<\|system\|>Be brief\./),
    });
  });

  it("computes accuracy and its continuous companions", async () => {
    // log p by label: hot gives A −2, B −1, C −4 (gold B, right); wet gives 1 −1.5, 2 −0.5 (gold 1, wrong);
    // flies gives A −3 and B −3 (gold B: a tie goes to the first, so wrong).
    const table: Record<string, number> = {
      "hot A": -2,
      "hot B": -1,
      "hot C": -4,
      "wet 1": -1.5,
      "wet 2": -0.5,
      "flies A": -3,
      "flies B": -3,
    };
    const nextToken = (prompt: string, label: string) =>
      table[`${/hot|wet|flies/.exec(prompt)![0]} ${label}`]!;
    const { row, value, plain, metrics } = await measureRows(
      capabilityEvaluation({ questions }),
      fakeModel({ nextToken }),
    );
    expect(row("hot")).toEqual({
      id: "hot",
      prompt:
        "<|user|>What is hot?\n\n(A) ice\n(B) fire\n(C) snow\n\nThe correct answer is (<|end|><|assistant|>",
      status: "scored",
      question: "What is hot?",
      labels: ["A", "B", "C"],
      choices: ["ice", "fire", "snow"],
      gold: "B",
      predicted: "B",
      correct: true,
      nats: [-2, -1, -4],
      truncatedTokens: 0,
    });
    expect([row("wet").predicted, row("flies").predicted]).toEqual(["2", "A"]);
    expect(value("accuracy")).toBeCloseTo(1 / 3, 12);
    expect(value("gold_log_prob")).toBeCloseTo((-1 - 1.5 - 3) / 3, 12);
    // margins: −1 − (−2) = 1; −1.5 − (−0.5) = −1; −3 − (−3) = 0
    expect(value("gold_margin")).toBeCloseTo(0, 12);
    // shares: e⁻¹/(e⁻²+e⁻¹+e⁻⁴) = 0.7054; e⁻¹·⁵/(e⁻¹·⁵+e⁻⁰·⁵) = 0.2689; 1/2
    expect(value("gold_prob")).toBeCloseTo((0.70538451 + 0.26894142 + 0.5) / 3, 8);
    expect(Object.keys(metrics)[0]).toBe("accuracy");
    expect(plain).toEqual({
      accuracy: 1 / 3,
      correct: 1,
      total: 3,
      template_failures: 0,
      label_collisions: 0,
      truncated: 0,
      // |0 − 0.5| for one question and |0.5 − 0.7182| for two.
      ece: expect.closeTo((0.5 + 2 * 0.21822155) / 3, 8),
      reliability: [
        { from: 0.4, n: 1, confidence: 0.5, accuracy: 0 },
        { from: 0.7, n: 2, confidence: expect.closeTo((0.70538451 + 0.73105858) / 2, 8), accuracy: 0.5 },
      ],
    });
    // Σ (p − y)² over three choices, two choices and two choices.
    const [a, c] = [Math.exp(-2), Math.exp(-4)].map((p) => p / (Math.exp(-1) + Math.exp(-2) + Math.exp(-4)));
    const brier = [a! ** 2 + (1 - 0.70538451) ** 2 + c! ** 2, 2 * 0.73105858 ** 2, 0.5];
    expect(value("brier")).toBeCloseTo((brier[0]! + brier[1]! + brier[2]!) / 3, 8);
  });

  it("counts chats that fail to render and labels that share a first token, and scores neither", async () => {
    const odd = join(folder, "odd.jsonl");
    await writeFile(
      odd,
      [
        record("Fine?", "A B", ["x", "y"], "A", "fine"),
        record("Bad?", "A B", ["x", "y"], "A", "bad"),
        record("Same?", "A1 A2", ["x", "y"], "A1", "same"),
        record("Empty?", "A B ?", ["x", "y", "z"], "A", "empty"),
      ].join("\n"),
    );
    const plainTokenizer = fakeTokenizer({ failsOn: ([turn]) => turn!.content.startsWith("Bad?") });
    const tokenizer: Tokenizer = {
      ...plainTokenizer,
      encode: (text, how) => (text === "?" ? [] : plainTokenizer.encode(text, how)),
    };
    const { row, plain, metrics } = await measureRows(
      capabilityEvaluation({ questions: odd }),
      fakeModel({ tokenizer, nextToken: (_, label) => (label === "A" ? -1 : -2) }),
    );
    expect(row("bad")).toMatchObject({
      status: "template_failure",
      correct: null,
      nats: null,
      reason: "the template raised an exception",
    });
    expect(row("same")).toMatchObject({
      status: "label_collision",
      correct: null,
      reason: "the labels A1, A2 share a first token",
    });
    expect(row("empty")).toMatchObject({
      status: "label_collision",
      correct: null,
      reason: 'no token begins "?"',
    });
    expect(plain).toEqual({
      accuracy: 1,
      correct: 1,
      total: 1,
      template_failures: 1,
      label_collisions: 2,
      truncated: 0,
      ece: expect.closeTo(0.26894142, 8),
      reliability: [{ from: 0.7, n: 1, confidence: expect.closeTo(0.73105858, 8), accuracy: 1 }],
    });
    expect(metrics["accuracy"]!.n).toBe(1);
  });

  it("reports in the preflight that the template cannot render the system prompt", async () => {
    const model = fakeModel({ tokenizer: fakeTokenizer({ defaultSystem: "Be kind." }) });
    const items = async () => capabilityEvaluation({ questions, system: "no_system_block" }).items(model);
    await expect(items()).rejects.toThrow(
      /capability options\.system: got a chat template that fails on every question \(this template always writes a system block\)/,
    );
  });

  it("names the missing template and cloze if the tokenizer has no chat template", async () => {
    const missing = new PeriodicEvalError({
      code: "model",
      where: "the trainer",
      got: "a tokenizer without a chat template",
      expected: "one that renders chats",
      fix: "Set `tokenizer.chat_template`.",
      detail: { kind: "no-template" },
    });
    const render = () => {
      throw missing;
    };
    const model = fakeModel({ tokenizer: { ...fakeTokenizer(), render } });
    const items = async () => capabilityEvaluation({ questions }).items(model);
    await expect(items()).rejects.toThrow(
      /capability options\.method: got "letters" and a tokenizer without a chat template \(the trainer\), .* Set `method: "cloze"`/,
    );
  });

  it("counts questions that are truncated on the left", async () => {
    const { plain, row } = await measureRows(
      capabilityEvaluation({ questions }),
      // An engine whose context length is not known before it cuts.
      { ...fakeModel({ contextLength: 60 }), contextLength: null },
    );
    // The fake tokenizer gives a token a byte and one for each of <|user|>, <|end|>, <|assistant|>. Beside those 3 and
    // the 27 of both blank lines and the closing words: hot 12 + 8 + 9 + 8 = 67 in all, wet 12 + 10 + 8 = 60,
    // flies 11 + 12 + (4 + 9) = 66.
    expect(["hot", "wet", "flies"].map((id) => row(id).truncatedTokens)).toEqual([7, 0, 6]);
    expect(plain).toMatchObject({ truncated: 2, total: 3 });
  });

  it("refuses a question that is longer than the model's context, before anything is measured", async () => {
    const items = (contextLength: number) =>
      (async () => capabilityEvaluation({ questions }).items(fakeModel({ contextLength })))();
    expect(await items(67)).toHaveLength(3);
    await expect(items(66)).rejects.toMatchObject({
      code: "data",
      where: 'capability question "hot"',
      got: "a prompt of 67 tokens",
      expected: "at most 66 tokens, the model's context length",
    });
  });

  it("cannot be judged if most prompts lost the beginning of their question", async () => {
    const warned = async (contextLength: number) => {
      const model = { ...fakeModel({ contextLength }), contextLength: null };
      return (await measure(capabilityEvaluation({ questions }), model)).snapshot.warnings;
    };
    expect(await warned(67)).toEqual([]);
    // Only "hot" has 67 tokens.
    expect(await warned(66)).toEqual([
      {
        kind: "cut_prompts",
        metrics: null,
        count: 1,
        total: 3,
        void: false,
        message: "1 of 3 prompts lost the beginning of their question to fit the model's context.",
      },
    ]);
    expect(await warned(60)).toMatchObject([{ kind: "cut_prompts", count: 2, total: 3, void: true }]);
  });

  it("refuses a chat template that leaves out the system prompt", async () => {
    const items = async (system: SystemPrompt) =>
      capabilityEvaluation({ questions, system }).items(fakeModel({ tokenizer: systemlessTokenizer() }));
    await expect(items({ text: "Be terse." })).rejects.toThrow(
      /capability question ".*": got a chat template that leaves out the system prompt "Be terse\."/,
    );
    expect(await items("omit")).toHaveLength(3);
  });

  it.each([Number.NaN, -Infinity])(
    "throws for a log-probability of %s instead of counting a wrong answer",
    async (nats) => {
      const broken = fakeModel({ nextToken: () => nats });
      await expect(measureRows(capabilityEvaluation({ questions }), broken)).rejects.toThrow(
        /got log-probabilities .*Check the training loss/,
      );
    },
  );
});

describe("cloze", () => {
  it("sums over the choice, divides by its code points for acc_norm, and takes the first of equal choices", async () => {
    const sums: Record<string, number> = {
      // gold "fire": right by the sum (−4 > −4.5 > −5); per code point −1.5, −1, −1.25: right as well
      " ice": -4.5,
      " fire": -4,
      " snow": -5,
      // gold "water": wrong by the sum (−6 < −5.2); per code point −6/5 = −1.2 against −5.2/4 = −1.3: right
      " water": -6,
      " sand": -5.2,
      // gold of 3 code points (9 bytes of UTF-8): wrong by the sum (−7.2 < −7); −7.2/3 = −2.4 against −7/7 = −1: wrong
      " a stone": -7,
      " 日本鳥": -7.2,
    };
    const asked: string[] = [];
    const logLikelihood = (text: string, continuation: string) => (asked.push(text), sums[continuation]!);
    const { row, value, plain } = await measureRows<ClozeRow>(
      capabilityEvaluation({ questions, method: "cloze" }),
      fakeModel({ logLikelihood }),
    );
    expect(asked).toContain("Question: What is hot?\nAnswer:");
    expect(["hot", "wet", "flies"].map((id) => [row(id).correct, row(id).correctNorm])).toEqual([
      [true, true],
      [false, true],
      [false, false],
    ]);
    expect([value("accuracy"), value("acc_norm")]).toEqual([1 / 3, 2 / 3]);
    expect(value("gold_log_prob")).toBeCloseTo((-4 - 6 - 7.2) / 3, 12);
    expect(value("gold_margin")).toBeCloseTo((0.5 - 0.8 - 0.2) / 3, 12);
    expect(plain).toMatchObject({ correct: 1, total: 3 });
    const tie = await measureRows<ClozeRow>(
      capabilityEvaluation({ questions, method: "cloze" }),
      fakeModel({ logLikelihood: (_, choice) => 1 - choice.length }),
    );
    // −(UTF-16 units of the choice): per code point −1 for all, so the first by acc_norm; by the sum the shortest
    expect([tie.row("flies").predictedNorm, tie.row("flies").predicted]).toEqual(["A", "B"]);
  });

  it("counts code points, not UTF-16 units", async () => {
    const emoji = join(folder, "emoji.jsonl");
    await writeFile(emoji, record("?", "A B", ["😀😀", "abc"], "A"));
    // −3/2 = −1.5 against −4/3 = −1.33: B. By UTF-16 units it would be −3/4 against −4/3: A.
    const logLikelihood = (_: string, choice: string) => (choice === " abc" ? -4 : -3);
    const { rows } = await measureRows<ClozeRow>(
      capabilityEvaluation({ questions: emoji, method: "cloze" }),
      fakeModel({ logLikelihood }),
    );
    expect(rows[0]!.predictedNorm).toBe("B");
  });

  it("shows the same examples from the pool for all questions, and records them", async () => {
    const asked = new Set<string>();
    const evaluation = capabilityEvaluation({
      questions,
      method: "cloze",
      shots: { shots: 2, pool, poolSeed: 42 },
    });
    await measureRows(evaluation, fakeModel({ logLikelihood: (text) => (asked.add(text), -1) }));
    // Python: random.Random(42).sample(range(3), 3) by rejection of getrandbits(2) gives 2, 0, 1: "three", then "one".
    const shown = "Question: Say three.\nAnswer: three\n\nQuestion: Say one.\nAnswer: one\n\n";
    expect(asked).toContain(`${shown}Question: What is hot?\nAnswer:`);
    expect([...asked].every((text) => text.startsWith(shown))).toBe(true);
    expect(evaluation.provenance!()).toMatchObject({
      shots: { shots: 2, pool_seed: 42, ids: ["three", "one", "two"] },
    });
  });

  it("refuses a choice that is longer than the model's context, before anything is measured", async () => {
    const items = (contextLength: number | null) =>
      (async () =>
        capabilityEvaluation({ questions, method: "cloze" }).items({ ...fakeModel(), contextLength }))();
    // " 日本鳥" has 10 bytes, and the tokenizer a token per byte.
    expect(await items(null)).toHaveLength(3);
    await expect(items(9)).rejects.toMatchObject({
      code: "data",
      where: 'question "flies"',
      got: 'the choice "日本鳥" of 10 tokens',
      expected: "at most 9 tokens, the model's context length",
    });
    // The choice fits alone, but not after its question: 10 + 6 + 11 + 1 + 7 + 10, of which the last is never read.
    await expect(items(37)).rejects.toMatchObject({
      where: 'capability question "flies"',
      got: "a prompt of 38 tokens",
    });
    expect(await items(38)).toHaveLength(3);
  });

  it("may cut examples before a question, with a warning", async () => {
    const evaluation = capabilityEvaluation({
      questions,
      method: "cloze",
      shots: { shots: 2, pool, poolSeed: 42 },
    });
    const { snapshot } = await measure(evaluation, fakeModel({ contextLength: 40 }));
    expect(snapshot.warnings).toMatchObject([{ kind: "cut_prompts", count: 3, total: 3, void: false }]);
    expect((await measure(evaluation, fakeModel())).snapshot.warnings).toEqual([]);
  });

  it("never shows a question as its own example", async () => {
    const asked: string[] = [];
    const evaluation = capabilityEvaluation({
      questions: pool,
      method: "cloze",
      shots: { shots: 1, pool, poolSeed: 42 },
    });
    await measureRows(evaluation, fakeModel({ logLikelihood: (text) => (asked.push(text), -1) }));
    expect(asked).toContain("Question: Say one.\nAnswer: one\n\nQuestion: Say three.\nAnswer:");
    const all = capabilityEvaluation({
      questions: pool,
      method: "cloze",
      shots: { shots: 3, pool, poolSeed: 42 },
    });
    await expect((async () => all.items(fakeModel()))()).rejects.toThrow(
      "2 examples for question three, which is itself in the pool",
    );
  });
});

describe("options", () => {
  it.each<[string, object, RegExp]>([
    ["an empty path", { questions: "" }, /capability options\.questions: got "", expected the path/],
    [
      "an unknown key",
      { questions: "q", methd: "cloze" },
      /capability options\.methd: got the unknown option "methd", .*Did you mean "method"/,
    ],
    [
      "an unknown key of `subsample`",
      { questions: "q", subsample: { n: 5, sede: 1 } },
      /capability options\.subsample\.sede: .*Did you mean "seed"/,
    ],
    ["an unknown method", { questions: "q", method: "letter" }, /capability options\.method: got "letter"/],
    [
      "a number as `subsample`",
      { questions: "q", subsample: 50 as never },
      /subsample: got 50, expected .*Write \{ n: 50, seed: 42 \}/,
    ],
    [
      "a subsample without a seed",
      { questions: "q", subsample: { n: 8 } as never },
      /subsample\.seed: got undefined, expected .*Write \{ n: 50, seed: 42 \}/,
    ],
    [
      "a subsample of 0",
      { questions: "q", subsample: { n: 0, seed: 42 } },
      /capability options\.subsample\.n: got 0, expected a positive integer/,
    ],
    ["NaN", { questions: "q", subsample: { n: Number.NaN, seed: 42 } }, /got NaN/],
    [
      "shots with letters",
      { questions: "q", shots: { shots: 1, pool: "p", poolSeed: 1 } },
      /got shots with method "letters"/,
    ],
    [
      "a system prompt that is a string",
      { questions: "q", system: "template-default" },
      /capability options\.system: got "template-default", expected "omit", "no_system_block" or \{ text: string \}\. Write \{ text: "…" \}/,
    ],
    [
      "the string `empty` as a system prompt",
      { questions: "q", system: "empty" },
      /\{ text: "" \} for an empty one/,
    ],
    ["a system prompt without text", { questions: "q", system: { txt: "x" } }, /system: got \{"txt":"x"\}/],
    ["a system prompt with another key", { questions: "q", system: { text: "x", role: "y" } }, /"role":"y"/],
    ["null as a system prompt", { questions: "q", system: null }, /capability options\.system: got null/],
    [
      "a system prompt with cloze",
      { questions: "q", method: "cloze", system: { text: "x" } },
      /cloze renders no chat/,
    ],
  ])("reject %s at construction", (_, options, message) => {
    expect(() => capabilityEvaluation(options as CapabilityOptions)).toThrow(message);
  });

  it("name option and path when a file is missing", async () => {
    const items = async () =>
      capabilityEvaluation({ questions: join(folder, "none.jsonl") }).items(fakeModel());
    await expect(items()).rejects.toThrow(
      /capability options\.questions: got ".*none\.jsonl", which does not exist/,
    );
  });

  it("reports progress every 64 questions, and stops at an abort between batches", async () => {
    const many = join(folder, "many.jsonl");
    await writeFile(
      many,
      Array.from({ length: 130 }, (_, n) => record(`${n}?`, "A B", ["x", "y"], "A")).join("\n"),
    );
    const evaluation = capabilityEvaluation({ questions: many, subsample: null });
    const model = fakeModel();
    const items = await evaluation.items(model);
    const reported: number[] = [];
    await evaluation.measure(model, items, { ...context, progress: (done) => reported.push(done) });
    expect([reported, model.calls.nextToken]).toEqual([[64, 128, 130], 3]);
    const stop = new AbortController();
    const stopped = async () =>
      evaluation.measure(model, items, {
        ...context,
        signal: stop.signal,
        progress: () => stop.abort(new Error("enough")),
      });
    await expect(stopped()).rejects.toThrow("enough");
    expect(model.calls.nextToken).toBe(4);
  });
});

const real = "../shared/data/arc_challenge/test.jsonl";
it.skipIf(!existsSync(real))(
  `200 of ${real} are those of the reference implementation, and a smaller n takes the first`,
  async () => {
    const ids = async (n: number | null) => {
      const evaluation = capabilityEvaluation({
        questions: real,
        subsample: n === null ? null : { n, seed: 42 },
      });
      return (await evaluation.items(fakeModel())) as readonly { id: string; question: string }[];
    };
    const two = await ids(200);
    expect(two).toHaveLength(200);
    expect(await ids(50)).toEqual(two.slice(0, 50));
    expect((await ids(null)).slice(0, 200)).toEqual(two);
    // Python: random.Random(42).sample(range(1172), 200)[:3] == [228, 51, 563]
    const { readFileSync } = await import("node:fs");
    const lines = readFileSync(real, "utf8").split("\n");
    expect(two.slice(0, 3).map(({ question }) => question)).toEqual(
      [228, 51, 563].map((at) => JSON.parse(lines[at]!).question),
    );
  },
);
