import { describe, expect, it } from "vitest";
import type { EvaluableModel, LogLikelihood } from "@periodic-eval/contracts";
import { fakeModel, type FakeModel } from "@periodic-eval/testing";
import { probeModel } from "./probe-model.ts";

const call = { signal: new AbortController().signal };
const kindsOf = async (model: EvaluableModel) => (await probeModel(model, [], call)).map(({ kind }) => kind);

/** A model that adds `noise` to each score of the second batch. */
function noisy(noise: number, changes: Partial<EvaluableModel> = {}): FakeModel {
  const model = fakeModel();
  return {
    ...model,
    ...changes,
    async logLikelihoods(requests, options) {
      const scores = await model.logLikelihoods(requests, options);
      const added = model.calls.logLikelihoods === 2 ? noise : 0;
      return scores.map((one): LogLikelihood => ({
        ...one,
        tokenNats: one.tokenNats.map((nats) => nats + added),
      }));
    },
  };
}

describe("probeModel", () => {
  it("asks for two batches of two sequences, of at most twelve tokens, that begin differently", async () => {
    const asked: number[][] = [];
    const model = fakeModel({ contextLength: 9 });
    await probeModel(
      {
        ...model,
        logLikelihoods(requests, options) {
          for (const { context, continuation } of requests)
            asked.push([
              ...(context as { ids: readonly number[] }).ids,
              ...(continuation as { ids: readonly number[] }).ids,
            ]);
          return model.logLikelihoods(requests, options);
        },
      },
      [],
      call,
    );
    expect(model.calls).toEqual({ logLikelihoods: 2, nextToken: 0, generate: 0 });
    const [repeated, first, changed, again] = asked;
    expect(asked.map(({ length }) => length)).toEqual([9, 9, 9, 9]);
    expect(again).toEqual(repeated);
    expect(changed!.slice(0, 6)).toEqual(first!.slice(0, 6));
    expect(changed!.slice(6).some((id, at) => id === first![6 + at])).toBe(false);
    expect(repeated![0]).not.toBe(first![0]);
  });

  it("accepts 1e-3 nats per token in float32, or the engine's tolerance", async () => {
    expect(await kindsOf(noisy(0.0009))).toEqual([]);
    expect(await kindsOf(noisy(0.0011))).toEqual(["unrepeatable"]);
    expect(await kindsOf(noisy(0.3, { toleranceNats: 0.4 }))).toEqual([]);
    expect(await kindsOf(noisy(0.5, { toleranceNats: 0.4 }))).toEqual(["unrepeatable"]);
    expect(await kindsOf(noisy(5, { toleranceNats: Infinity }))).toEqual([]);
    const { identity } = fakeModel();
    expect(await kindsOf(noisy(0.3, { identity: { ...identity, dtype: "bfloat16" } }))).toEqual([]);
  });

  it("leaves a model that fails, or that does not score tokens, to its measurement", async () => {
    const failing = { ...fakeModel(), logLikelihoods: () => Promise.reject(new Error("NaN")) };
    expect(await kindsOf(failing)).toEqual([]);
    const { logLikelihoods: _, ...silent } = fakeModel();
    expect(await kindsOf(silent)).toEqual([]);
    const { tokenizer: __, ...unread } = fakeModel();
    expect(await kindsOf(unread)).toEqual([]);
  });
});
