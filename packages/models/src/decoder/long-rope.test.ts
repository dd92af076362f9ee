import { inMemory } from "@periodic-eval/tfjs";
import { fakeTokenizer } from "@periodic-eval/testing";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { useBackend } from "../backend/use-backend.ts";
import { createCausalLM } from "../checkpoint/create-causal-lm.ts";
import type { CheckpointLM } from "../checkpoint/model.ts";
import { tinyConfigs } from "../testing/tiny-config.test-data.ts";

const call = { signal: new AbortController().signal };
const tokens = (count: number, first: number) =>
  Array.from({ length: count }, (_, at) => (first + at * 5) % 32);

/** Sequences of more than 10 tokens use other rotary frequencies from their first token on. */
describe("a Phi-3 with LongRoPE", () => {
  let lm: CheckpointLM;
  beforeAll(async () => {
    await useBackend({ backend: "cpu" });
    lm = createCausalLM(
      {
        ...tinyConfigs.phi3,
        max_position_embeddings: 32,
        original_max_position_embeddings: 10,
        rope_scaling: { type: "longrope", short_factor: [1, 1], long_factor: [4, 16] },
      },
      { seed: "a", initStd: 0.5 },
    );
  });
  afterAll(() => lm.dispose());

  it("scores a sequence next to longer ones as it does alone", async () => {
    const model = inMemory(lm, fakeTokenizer());
    const requests = [6, 20, 10, 11, 3].map((length) => ({
      prompt: { ids: tokens(length, length) },
      candidates: [1, 2, 3],
    }));
    const together = await model.nextToken(requests, call);
    for (const [i, one] of requests.entries()) {
      const [alone] = await model.nextToken([one], call);
      alone!.nats.forEach((nats, at) => expect(together[i]!.nats[at]).toBeCloseTo(nats, 5));
    }
  });

  it("generates the same alone and next to longer sequences, in agreement with scoring", async () => {
    const model = inMemory(lm, { ...fakeTokenizer(), stopIds: [] });
    const sampling = { maxNewTokens: 10, temperature: 0, seed: "s" };
    const requests = [6, 20, 10, 2].map((length) => ({ prompt: { ids: tokens(length, length) }, sampling }));
    const together = await model.generate(requests, call);
    for (const [i, { prompt }] of requests.entries()) {
      const ids = [...prompt.ids];
      for (const [at, token] of together[i]!.ids!.entries()) {
        const [next] = await model.nextToken([{ prompt: { ids: [...ids] }, candidates: [token] }], call);
        expect(together[i]!.tokenNats![at]).toBeCloseTo(next!.nats[0]!, 4);
        ids.push(token);
      }
    }
  });

  it("passes the model's self-check although its reach is shorter than the check's default prompts", async () => {
    await inMemory(lm, fakeTokenizer()).check!(call);
  });
});
