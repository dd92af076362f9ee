import { expect, it, test } from "vitest";
import { PeriodicCallback } from "../callback/periodic-callback.ts";
import { defineEvaluation } from "../evaluations/kit/define.ts";
import type { AnyEvaluation, Row, EvaluableModel, GenerateRequest } from "@periodic-eval/contracts";
import { promptTexts, sampleCompletions, type CompletionItem } from "../evaluations/prompting/completions.ts";
import { withSession } from "../session/loop/session.ts";
import { fakeModel, modelConformance } from "@periodic-eval/testing";
import { toyTraining } from "../../../testing/src/toy-training.test-data.ts";
import { shareGenerations } from "./share-generations.ts";

const options = { signal: new AbortController().signal };
const request = (text: string, seed = "s"): GenerateRequest => ({
  prompt: { text },
  sampling: { maxNewTokens: 4, temperature: 1, seed },
});

for (const check of modelConformance(() => shareGenerations(fakeModel()).model)) it(check.name, check.run);

test("passes only new requests to the model, in their order", async () => {
  const requested: string[][] = [];
  const model = fakeModel();
  const spied = {
    ...model,
    generate: (requests: readonly GenerateRequest[], given: typeof options) => {
      requested.push(
        requests.map(({ prompt, sampling }) => `${"text" in prompt ? prompt.text : ""}/${sampling.seed}`),
      );
      return model.generate(requests, given);
    },
  };
  const { model: shared, forget } = shareGenerations(spied);
  await shared.generate!([request("a"), request("b")], options);
  const answers = await shared.generate!([request("c"), request("b"), request("a", "t")], options);
  expect(answers).toEqual(await model.generate([request("c"), request("b"), request("a", "t")], options));
  expect(requested).toEqual([
    ["a/s", "b/s"],
    ["c/s", "a/t"],
  ]);
  forget();
  await shared.generate!([request("a")], options);
  expect(requested.at(-1)).toEqual(["a/s"]);
});

test("caches log-probabilities of a few candidates, but not of a whole vocabulary", async () => {
  const requested: number[] = [];
  const model = fakeModel();
  const spied = {
    ...model,
    nextToken: (requests: Parameters<typeof model.nextToken>[0], given: typeof options) => {
      requested.push(...requests.map(({ candidates }) => candidates.length));
      return model.nextToken(requests, given);
    },
  };
  const { model: shared } = shareGenerations(spied);
  const of = (count: number) => ({
    prompt: { text: "a" },
    candidates: Array.from({ length: count }, (_, at) => at),
  });
  const requests = [of(257), of(256), of(4)];
  expect(await shared.nextToken!(requests, options)).toEqual(await model.nextToken(requests, options));
  await shared.nextToken!(requests, options);
  expect(requested).toEqual([257, 256, 4, 257]);
});

test("caches no more answers of an ability than it may", async () => {
  const requested: number[] = [];
  const spied: EvaluableModel = {
    ...fakeModel(),
    nextToken: async (requests) => {
      requested.push(requests.length);
      return requests.map(() => ({ nats: [-1], entropyNats: null, truncatedTokens: 0 }));
    },
  };
  const { model } = shareGenerations(spied, 3);
  const asked = Array.from({ length: 5 }, (_, at) => ({ prompt: { ids: [at] }, candidates: [0] }));
  await model.nextToken!(asked, options);
  await model.nextToken!(asked, options);
  expect(requested).toEqual([5, 2]);
});

test("caches the answers of the base separately", async () => {
  const base = fakeModel({ reply: () => "base" });
  const { model } = shareGenerations(fakeModel({ reply: () => "adapter", base }));
  const [one] = await model.generate!([request("a")], options);
  const [other] = await model.base!.generate!([request("a")], options);
  expect([one!.text, other!.text]).toEqual(["adapter", "base"]);
});

/** Samples twice from each of its prompts. */
function sampling(name: string, questions: readonly string[], onMeasured?: () => void): PeriodicCallback {
  const evaluation = defineEvaluation({
    name,
    version: "1",
    needs: ["generate"],
    samplesPerItem: 2,
    items: (): readonly CompletionItem[] =>
      questions.map((question) => ({
        id: `${name}-${question}`,
        question,
        persona: null,
        prompt: { text: question },
      })),
    async measure(model, items, context) {
      const rows = await sampleCompletions(
        model,
        items,
        {
          samples: 2,
          stripThinking: false,
          sampling: { maxNewTokens: 8, temperature: 1 },
          prompts: await promptTexts(model, items),
        },
        context,
      );
      onMeasured?.();
      return rows;
    },
    metrics: ({ mean }) => ({ length: mean((row) => row.text.length) }),
  }) as AnyEvaluation;
  return new PeriodicCallback(evaluation, { schedule: [] });
}

const texts = (rows: readonly Row[], question: string) =>
  (rows as readonly (Row & { question: string; text: string })[])
    .filter((row) => row.question === question)
    .map(({ text }) => text);

test("shares completions of the same prompt between evaluations of one step, without changing them", async () => {
  const rowsOf = async (callbacks: readonly PeriodicCallback[], id: string, step = 0) => {
    const toy = toyTraining();
    const requests: number[] = [];
    const generate = toy.model.generate;
    const model = {
      ...toy.model,
      generate: (requested: readonly GenerateRequest[], given: typeof options) => {
        requests.push(requested.length);
        return generate(requested, given);
      },
    };
    await withSession({ ...toy.options(callbacks, { maxSteps: 2 }), model }, async (session) => {
      for (let i = 0; i < 2; i++) await session.stepEnd();
    });
    return { rows: await toy.store.rows({ phase: "train", id, step }), requests };
  };
  const one = () => sampling("one", ["x", "shared"]);
  const two = () => sampling("two", ["shared", "y", "z"]);
  const both = await rowsOf([one(), two()], "two");
  // In each of two measurements: 2 · 2 completions, then 2 · 3, of which 2 are cached.
  expect(both.requests).toEqual([4, 4, 4, 4]);
  expect(both.rows).toEqual((await rowsOf([two()], "two")).rows);
  const ofOne = (await rowsOf([one()], "one")).rows;
  expect(texts(ofOne, "shared")).toEqual(texts(both.rows, "shared"));
  // Each sample and each step has its own random stream, although the weights are the same.
  expect(new Set(texts(ofOne, "shared")).size).toBe(2);
  expect(texts((await rowsOf([one()], "one", 2)).rows, "shared")).not.toEqual(texts(ofOne, "shared"));
});
