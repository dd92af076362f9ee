import { fakeModel } from "@periodic-eval/core/testing";
import { describe, expect, it } from "vitest";
import { evaluate } from "./evaluate.ts";
import { multipleChoiceEvaluation } from "./multiple-choice.ts";
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
  it("hold a rollout's prompt and completion, with a mask over the generated tokens", async () => {
    const model = fakeModel({ contextLength: 16 });
    const { value, intermediates } = await evaluate(sums, model, {
      reduce: "none",
      returnIntermediates: true,
    });
    const { rows, ids, shape, paddingMask, actionMask } = intermediates;
    expect(value).toHaveLength(5);
    // The prompt that exceeds its budget was not sent.
    expect(rows).toEqual(["q0#0", "q1#0", "q2#0", "q3#0"]);
    const signal = new AbortController().signal;
    const completions = await model.generate(
      documents.slice(0, 4).map(({ question }) => ({
        prompt: { text: question },
        sampling: { maxNewTokens: 4, temperature: 0, seed: "" },
      })),
      { signal },
    );
    const lengths = completions.map((one) => one.ids!.length);
    expect(shape).toEqual([4, 4 + Math.max(...lengths)]);
    const [, length] = shape;
    for (const at of rows.keys()) {
      const row = (list: Int32Array | Uint8Array) => Array.from(list.slice(at * length, (at + 1) * length));
      const own = [...model.tokenizer.encode(documents[at]!.question), ...completions[at]!.ids!];
      const rest = Array.from({ length: length - own.length }, () => 0);
      expect(row(ids)).toEqual([...own, ...rest]);
      expect(row(paddingMask)).toEqual([...own.map(() => 1), ...rest]);
      // Every prompt has 4 bytes.
      expect(row(actionMask)).toEqual([...own.map((_, i) => (i < 4 ? 0 : 1)), ...rest]);
    }
    expect(new Set(lengths).size, "completions of several lengths").toBeGreaterThan(1);
  });

  it("hold one sequence per choice for multiple choice, with a mask over the scored tokens", async () => {
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
    const { intermediates } = await evaluate(choice, fakeModel(), { returnIntermediates: true });
    // The sequences are "B x", "B yz", "A x" and "A yz" in bytes; the first byte belongs to the context.
    expect(intermediates).toEqual({
      rows: ["b", "b", "a", "a"],
      ids: Int32Array.of(66, 32, 120, 0, 66, 32, 121, 122, 65, 32, 120, 0, 65, 32, 121, 122),
      shape: [4, 4],
      paddingMask: Uint8Array.of(1, 1, 1, 0, 1, 1, 1, 1, 1, 1, 1, 0, 1, 1, 1, 1),
      actionMask: Uint8Array.of(0, 1, 1, 0, 0, 1, 1, 1, 0, 1, 1, 0, 0, 1, 1, 1),
    });
  });
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
});
