import { defineEvaluation, measure, type EvaluableModel, type Sampling } from "@periodic-eval/core";
import { fakeModel } from "@periodic-eval/testing";
import { describe, expect, it } from "vitest";
import { encodingEvaluation } from "./encoding.ts";
import type { CallSampling } from "./evaluate-options.ts";
import { evaluate, withSampling } from "./evaluate.ts";
import type { AnyFamily } from "./family.ts";
import { multipleChoiceEvaluation } from "./multiple-choice.ts";
import { perplexityComparisonEvaluation } from "./perplexity-comparison.ts";
import { perplexityEvaluation } from "./perplexity.ts";
import { rolloutEvaluation } from "./rollout.ts";

const documents = ["1+1=", "2+2=", "3+3=", "4+4=", "9".repeat(20)].map((question, at) => ({
  id: `q${at}`,
  question,
}));
const replies: Readonly<Record<string, string>> = { "1+1=": "2", "2+2=": "5", "3+3=": "6", "4+4=": "8" };
const sums = rolloutEvaluation({
  name: "sums",
  documents,
  prompt: ({ question }) => question,
  maxNewTokens: 4,
  check: ({ question }, text) => Number(text) === 2 * Number(question[0]),
});
const scripted = () => fakeModel({ contextLength: 16, reply: (prompt) => replies[prompt] ?? null });

describe("one family by itself", () => {
  it.each([
    [
      { name: "gsm8k", open: () => sums },
      'evaluate: got the task "gsm8k", expected an evaluation. Open the task',
    ],
    [undefined, "evaluate: got undefined, expected an evaluation"],
  ])("is required: %j", async (given, message) => {
    await expect(evaluate(given as never, scripted())).rejects.toThrow(message);
  });

  it("returns a mean, a sum, or the value of each sample in the documents' order", async () => {
    // 2, 6 and 8 are correct, 5 is not; the last prompt has 20 tokens and exceeds its budget of 12.
    expect(await evaluate(sums, scripted())).toBe(3 / 4);
    expect(await evaluate(sums, scripted(), { reduce: "sum" })).toBe(3);
    expect(await evaluate(sums, scripted(), { reduce: "none" })).toEqual([1, 0, 1, 1, null]);
  });

  it("returns the same values in chunks", async () => {
    const model = scripted();
    expect(await evaluate(sums, model, { reduce: "none", chunkSize: 2 })).toEqual([1, 0, 1, 1, null]);
    // Five documents in chunks of two take three calls.
    expect(model.calls.generate).toBe(3);
  });

  it("returns null if no sample was scored", async () => {
    const nothing = rolloutEvaluation({
      name: "nothing",
      documents,
      prompt: ({ question }) => question,
      maxNewTokens: 1,
      score: () => null,
    });
    expect(await evaluate(nothing, fakeModel())).toBeNull();
    expect(await evaluate(nothing, fakeModel(), { reduce: "sum" })).toBeNull();
    expect(await evaluate(nothing, fakeModel(), { reduce: "none" })).toEqual([null, null, null, null, null]);
  });

  it("samples with the given seed", async () => {
    const drawn = rolloutEvaluation({
      name: "drawn",
      documents,
      prompt: ({ question }) => question,
      maxNewTokens: 8,
      temperature: 1,
      score: (_, text) => text.length,
    });
    const of = (seed: string) => evaluate(drawn, fakeModel(), { seed, reduce: "none" });
    expect(await of("1")).toEqual(await of("1"));
    expect(await of("1")).not.toEqual(await of("2"));
  });

  it("stops at an aborted signal", async () => {
    await expect(evaluate(sums, scripted(), { signal: AbortSignal.abort() })).rejects.toThrow();
  });
});

describe("intermediates", () => {
  it("are one pair of ids and padding mask per sample, with masks of the generated tokens", async () => {
    const model = fakeModel({ contextLength: 16 });
    const { value, intermediates, actionMasks } = await evaluate(sums, model, {
      reduce: "none",
      returnIntermediates: true,
    });
    expect(intermediates).toHaveLength(value.length);
    const completions = await model.generate(
      documents.slice(0, 4).map(({ question }) => ({
        prompt: { text: question },
        sampling: { maxNewTokens: 4, temperature: 0, seed: "" },
      })),
      { signal: new AbortController().signal },
    );
    const lengths = completions.map((one) => one.ids!.length);
    expect(new Set(lengths).size, "completions of several lengths").toBeGreaterThan(1);
    const length = 4 + Math.max(...lengths);
    for (const [at, [ids, paddingMask]] of intermediates.entries()) {
      // The last prompt exceeds its budget and was not sent.
      const [prompt] = await model.tokenizer.encode([documents[at]!.question]);
      const own = at === 4 ? [] : [...prompt!, ...completions[at]!.ids!];
      const rest = Array.from({ length: length - own.length }, () => 0);
      expect([...ids]).toEqual([...own, ...rest]);
      expect([...paddingMask]).toEqual([...own.map(() => 1), ...rest]);
      // Every prompt has 4 bytes.
      expect([...actionMasks[at]!]).toEqual([...own.map((_, i) => (i < 4 ? 0 : 1)), ...rest]);
    }
  });

  it("encode the text of an engine that returns no ids", async () => {
    const model = fakeModel({ reply: () => "6" });
    const { intermediates } = await evaluate(sums, model, { returnIntermediates: true });
    expect(intermediates[0]![0]).toEqual(
      Int32Array.from([..."1+1=6".padEnd(21, "\0")].map((c) => c.charCodeAt(0))),
    );
  });

  it("have several completions of a prompt each as a sample", async () => {
    const drawn = { reduce: "none", temperature: 1, samplesPerPrompt: 3, returnIntermediates: true } as const;
    const { value, intermediates } = await sums.evaluate(fakeModel({ contextLength: 40 }), drawn);
    expect([value.length, intermediates.length]).toEqual([15, 15]);
  });

  it("have the choice that the model prefers, with a mask over its tokens", async () => {
    const choice = multipleChoiceEvaluation({
      name: "choice",
      documents: [
        { id: "b", question: "B" },
        { id: "a", question: "A" },
      ],
      prompt: ({ question }) => question,
      choices: () => ["x", "yz"],
      gold: () => 0,
    });
    const { rows } = await measure(choice, fakeModel());
    const { intermediates, actionMasks } = await evaluate(choice, fakeModel(), { returnIntermediates: true });
    const texts = ["b", "a"].map((id) => {
      const { predicted } = rows.find((row) => row.id === id) as unknown as { readonly predicted: number };
      return `${id.toUpperCase()} ${["x", "yz"][predicted]}`;
    });
    const length = Math.max(...texts.map((text) => text.length));
    const bytes = (text: string) => Int32Array.from({ length }, (_, at) => text.charCodeAt(at) || 0);
    const ones = (text: string, from: number) =>
      Uint8Array.from({ length }, (_, at) => Number(at >= from && at < text.length));
    expect(intermediates).toEqual(texts.map((text) => [bytes(text), ones(text, 0)]));
    // The first byte belongs to the context.
    expect(actionMasks).toEqual(texts.map((text) => ones(text, 1)));
  });
});

describe("as a method of every family", () => {
  const texts = [
    { id: "a", text: "aab" },
    { id: "b", text: "abab" },
  ];
  const text = ({ text: own }: { readonly text: string }) => own;
  const choices = {
    documents: texts,
    prompt: text,
    choices: () => ["x", "yz"],
    gold: () => 0,
  };
  const families: readonly AnyFamily[] = [
    sums,
    multipleChoiceEvaluation({ name: "choice", ...choices }),
    perplexityComparisonEvaluation({ name: "comparison", ...choices }),
    perplexityEvaluation({ name: "perplexity", documents: texts, text }),
    encodingEvaluation({ name: "encoding", documents: texts, text }),
    encodingEvaluation({
      name: "hooked",
      documents: texts,
      text,
      check: (_, predicted) => predicted === "ab",
    }),
  ];

  it.each(families.map((family) => [family.name, family] as const))(
    "%s: `sum` is the sum of the scores, and each has its intermediates",
    async (_, family) => {
      const scores = await family.evaluate(scripted(), "none");
      const sum = scores.reduce<number>((total, score) => total + (score ?? 0), 0);
      expect(await family.evaluate(scripted(), "sum")).toBeCloseTo(sum, 12);
      const { intermediates } = await family.evaluate(scripted(), { returnIntermediates: true });
      expect(intermediates).toHaveLength(scores.length);
    },
  );

  it.each(families.map((family) => [family.name, family] as const))(
    "%s.evaluate(model, { reduce }) and evaluate(model, reduce) return mean, sum, and each sample",
    async (_, family) => {
      const model = scripted();
      expect(await family.evaluate(model)).toBe(await evaluate(family, model));
      for (const reduce of ["mean", "sum", "none"] as const) {
        const value: unknown = await family.evaluate(model, { reduce });
        expect(value).toEqual(await evaluate(family, model, { reduce }));
        expect(value).toEqual(await evaluate(family, model, reduce));
        const { value: first } = await family.evaluate(model, reduce, {
          chunkSize: 1,
          returnIntermediates: true,
        });
        expect(first).toEqual(value);
        if (reduce === "none") expect(value).toHaveLength(await family.length());
        else expect(value).toEqual(expect.any(Number));
      }
    },
  );

  it("takes a trainer, and refuses what is neither trainer nor model", async () => {
    expect(await sums.evaluate({ evaluableModel: scripted() })).toBe(3 / 4);
    for (const wrong of [undefined, "path/to/model", {}])
      await expect(sums.evaluate(wrong as never)).rejects.toMatchObject({
        code: "config",
        where: "evaluate",
        expected: "a model, or a trainer with an `evaluableModel`",
      });
  });

  it("measures a copy of the family with its changes", async () => {
    const one = { ...sums, items: async (model: never) => (await sums.items(model)).slice(0, 1) };
    expect(await one.evaluate(scripted(), { reduce: "none" })).toHaveLength(1);
  });
});

it("evaluates any other evaluation, in the order of its items", async () => {
  const lengths = defineEvaluation({
    name: "lengths",
    version: "1",
    needs: ["generate"],
    items: () => documents,
    measure: async (_, items) =>
      items.map(({ id, question }) => ({ id, length: question.length })).toReversed(),
    metrics: ({ mean }) => ({ length: mean(({ length }) => length) }),
  });
  expect(await evaluate(lengths, scripted(), { reduce: "none" })).toEqual([4, 4, 4, 4, 20]);
  await expect(evaluate(lengths, scripted(), { temperature: 1 })).rejects.toMatchObject({
    code: "config",
    where: "evaluate options.temperature",
    got: 'temperature 1 for "lengths", which sets its own sampling',
  });
  await expect(evaluate(lengths, scripted(), { returnIntermediates: true })).rejects.toMatchObject({
    code: "config",
    path: ["returnIntermediates"],
    got: 'true for "lengths", which does not report its tokens',
  });
});

describe("sampling at call time", () => {
  const drawn = () =>
    rolloutEvaluation({
      name: "drawn",
      documents: documents.slice(0, 4),
      prompt: ({ question }) => question,
      maxNewTokens: 4,
      score: (_, text) => text.length,
    });
  const model = () => fakeModel();

  it("replaces the evaluation's: temperature, topP, maxNewTokens, samplesPerPrompt, seed", async () => {
    const asked: Sampling[] = [];
    const inner = model();
    const watched: EvaluableModel = {
      ...inner,
      generate: (requests, call) => {
        asked.push(...requests.map(({ sampling }) => sampling));
        return inner.generate(requests, call);
      },
    };
    const family = drawn();
    const values = await family.evaluate(watched, {
      reduce: "none",
      temperature: 0.7,
      topP: 0.9,
      maxNewTokens: 12,
      samplesPerPrompt: 3,
      seed: 7,
    });
    expect(values).toHaveLength(12);
    for (const one of asked) expect(one).toMatchObject({ maxNewTokens: 12, temperature: 0.7, topP: 0.9 });
    expect(new Set(asked.map(({ seed }) => seed)).size).toBe(12);
    // The definition keeps its own.
    expect(await family.evaluate(watched, { reduce: "none" })).toHaveLength(4);
    expect(asked.at(-1)).toMatchObject({ maxNewTokens: 4, temperature: 0 });
  });

  it("draws by the seed, a string or an integer", async () => {
    const of = (seed: string | number) =>
      drawn().evaluate(model(), { temperature: 1, maxNewTokens: 8, reduce: "none", seed });
    expect(await of(7)).toEqual(await of("7"));
    expect(await of(7)).not.toEqual(await of(8));
  });

  it("is recorded in the provenance, so that other sampling is not compared", async () => {
    const facts = async (family: AnyFamily) =>
      (await measure(family, model())).snapshot.provenance.evaluation as Record<string, unknown>;
    const other = withSampling("evaluate", drawn(), { temperature: 0.7, samplesPerPrompt: 2 }) as AnyFamily;
    expect(await facts(drawn())).toMatchObject({ sampling: { maxNewTokens: 4, temperature: 0 }, samples: 1 });
    expect(await facts(other)).toMatchObject({ sampling: { maxNewTokens: 4, temperature: 0.7 }, samples: 2 });
  });

  it.each<readonly [options: CallSampling, at: string, got: string]>([
    [{ temperature: -1 }, "temperature", "-1"],
    [{ temperature: "1" as never }, "temperature", '"1"'],
    [{ topP: 0 }, "topP", "0"],
    [{ topP: 1.5 }, "topP", "1.5"],
    [{ maxNewTokens: 0 }, "maxNewTokens", "0"],
    [{ samplesPerPrompt: 1.5 }, "samplesPerPrompt", "1.5"],
    [{ samplesPerPrompt: 4 }, "samplesPerPrompt", "4 at temperature 0"],
    [{ seed: 0.5 }, "seed", "0.5"],
    [{ top_p: 1 } as never, "top_p", 'the unknown option "top_p"'],
  ])("refuses %j, with the place", async (options, at, got) => {
    await expect(drawn().evaluate(model(), options)).rejects.toMatchObject({
      code: "config",
      where: `evaluate options.${at}`,
      got,
    });
  });

  it("is refused by families that do not generate", async () => {
    const family = perplexityEvaluation({ name: "texts", documents, text: ({ question }) => question });
    await expect(family.evaluate(model(), { temperature: 0.7 })).rejects.toMatchObject({
      where: "evaluate options.temperature",
      got: 'temperature 0.7 for "texts", which does not generate',
    });
  });
});

it("measures the family without its object, and a copy of the family with other items", async () => {
  const { evaluate: alone } = sums;
  expect(await alone(scripted())).toBe(await sums.evaluate(scripted()));
  const copy = { ...sums, items: async (model: never) => (await sums.items(model)).slice(0, 1) };
  expect(await copy.evaluate(scripted(), { reduce: "none" })).toHaveLength(1);
});

it("rejects invalid options, and intermediates of a model without a tokenizer", async () => {
  const { tokenizer: _, ...served } = fakeModel();
  await expect(evaluate(sums, served, { returnIntermediates: true })).rejects.toThrow(
    'the model "fake", which has no tokenizer',
  );
  await expect(evaluate(sums, scripted(), { chunkSize: 0 })).rejects.toThrow(
    "evaluate options.chunkSize: got 0",
  );
  await expect(evaluate(sums, scripted(), { reduce: "median" as never })).rejects.toThrow('got "median"');
  await expect(evaluate(sums, scripted(), { chunk: 1 } as never)).rejects.toThrow('unknown option "chunk"');
  await expect(sums.evaluate(scripted(), "median" as never)).rejects.toMatchObject({
    code: "config",
    path: ["reduce"],
    got: '"median"',
  });
});
