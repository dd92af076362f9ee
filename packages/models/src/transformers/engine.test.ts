// Bounds of the memory of logits, on an ONNX export of the embedded model.
import { inMemory } from "@periodic-eval/tfjs";
import { describe, expect, it } from "vitest";
import { useBackend } from "../backend/use-backend.ts";
import { loadCausalLM } from "../checkpoint/load-causal-lm.ts";
import {
  exported,
  hasTransformers,
  loadOnnx,
  microWorld,
  needsTransformers,
} from "../testing/onnx.test-data.ts";
import { loadTokenizer } from "../tokenizer/load-tokenizer.ts";
import { openEngine, type EngineLimits } from "./engine.ts";
import { generateAll } from "./from-transformers.ts";
import { factsOf, type TransformersModel } from "./onnx-model.ts";
import { scoreSequences } from "./scoring.ts";

const { signal } = new AbortController();
const vocabSize = 1024;
const idsOf = (length: number, offset = 0) =>
  Array.from({ length }, (_, at) => (7 * at + offset) % vocabSize);
/** Scores the last `scored` tokens of rows of different lengths. */
const sequences = [
  [100, 100],
  [90, 20],
  [12, 12],
  [9, 2],
].map(([length, scored], row) => ({
  ids: idsOf(length!, row),
  picks: idsOf(scored!, 31).map((id) => [id, 5]),
}));

/** Opens an engine, and records the positions of each pass and of its logits. */
function recorded(model: TransformersModel, limits: Partial<EngineLimits>) {
  const passes: { readonly rows: number; readonly tokens: number; readonly logits: number }[] = [];
  const forward = async (inputs: never): Promise<unknown> => {
    const outputs = (await model.forward(inputs)) as {
      readonly logits: { readonly dims: readonly number[] };
    };
    const [rows, tokens] = (inputs as { readonly input_ids: { readonly dims: number[] } }).input_ids.dims;
    passes.push({ rows: rows!, tokens: tokens!, logits: rows! * outputs.logits.dims[1]! });
    return outputs;
  };
  const observed: TransformersModel = { config: model.config, sessions: model.sessions, forward };
  const engine = openEngine("test", observed, factsOf("test", model), {
    maxBatchTokens: 1024,
    batching: "padded",
    ...limits,
  });
  return { engine, passes };
}

describe.skipIf(!hasTransformers)(`openEngine (${needsTransformers})`, () => {
  it.each([
    ["all logits", {}],
    ["the last logits", { logitsToKeep: true }],
    ["all logits, without position ids", { positionIds: false }],
  ])("bounds the logits of a pass of a graph that computes %s, with equal scores", async (_, graph) => {
    const model = await loadOnnx(await exported(microWorld, graph));
    const whole = await scoreSequences(recorded(model, {}).engine, sequences, signal);
    const { engine, passes } = recorded(model, { maxLogits: 24 * vocabSize });
    const bounded = await scoreSequences(engine, sequences, signal);
    expect(Math.max(...passes.map(({ logits }) => logits))).toBeLessThanOrEqual(24);
    expect(passes.filter(({ rows }) => rows === 1).length).toBeGreaterThan(4);
    expect(bounded.tokens).toBe(whole.tokens);
    bounded.scores.forEach(({ nats, isTop, greedyIds, entropyNats }, at) => {
      const expected = whole.scores[at]!;
      expect([isTop, greedyIds]).toEqual([expected.isTop, expected.greedyIds]);
      expect([nats.length, entropyNats.length]).toEqual([
        2 * sequences[at]!.picks.length,
        sequences[at]!.picks.length,
      ]);
      [...nats, ...entropyNats].forEach((value, index) =>
        expect(Math.abs(value - [...expected.nats, ...expected.entropyNats][index]!)).toBeLessThan(1e-3),
      );
    });
  });

  it("generates the completions of inMemory with few logits at once", async () => {
    await useBackend({ backend: "wasm" });
    const tokenizer = await loadTokenizer(microWorld);
    const lm = await loadCausalLM(microWorld);
    const requests = [60, 8, 7, 6].map((length, at) => ({
      prompt: { ids: idsOf(length, at) },
      sampling: { maxNewTokens: 4 + 6 * at, temperature: 1, seed: `s${at}` },
    }));
    const expected = await inMemory(lm, tokenizer).generate(requests, { signal });
    lm.dispose();
    const { engine, passes } = recorded(await loadOnnx(await exported(microWorld)), {
      maxLogits: 24 * vocabSize,
    });
    const { completions } = await generateAll(engine, tokenizer, requests, signal);
    expect(completions.map(({ ids }) => ids)).toEqual(expected.map(({ ids }) => ids));
    expect(Math.max(...passes.map(({ logits }) => logits))).toBeLessThanOrEqual(24);
  });
});

describe("openEngine without a cache", () => {
  it("throws a memory error before a pass with too many logits", async () => {
    let passes = 0;
    const model: TransformersModel = {
      config: { vocab_size: vocabSize },
      sessions: { model: { inputNames: ["input_ids"], outputNames: ["logits"] } },
      forward: async () => ++passes,
    };
    const limits = { maxBatchTokens: 1024, batching: "padded", maxLogits: 4 * vocabSize } as const;
    const engine = openEngine("test", model, factsOf("test", model), limits);
    const long = { ids: idsOf(33), picks: [[1]] };
    await expect(scoreSequences(engine, [long], signal)).rejects.toMatchObject({
      code: "memory",
      where: "scoring",
      expected: "at most 32 tokens",
    });
    expect(passes).toBe(0);
  });
});
