import * as tf from "@tensorflow/tfjs";
import { capabilityEvaluation, measure } from "@periodic-eval/core";
import { inMemory, tfjsGuards } from "@periodic-eval/tfjs";
import { feedbackEvaluations } from "@periodic-eval/feedback";
import { loadCausalLM, useBackend, type CheckpointLM } from "@periodic-eval/models";
import { loadTokenizer } from "@periodic-eval/models/tokenizer";
import { expect, it } from "vitest";
import { nativeBackend } from "../../../models/src/testing/backends.test-data.ts";
import { microWorld } from "../demo/micro-world.ts";

const tokenizer = await loadTokenizer(microWorld());

/** The full form makes a hundred evaluations; the short form makes every kind of evaluation four times. */
const rounds = 100;

it.for(["wasm", nativeBackend])(`${rounds} evaluations leak no tensors on %s`, async (backend, test) => {
  if (backend !== "wasm") {
    const missing = await useBackend({ backend }).then(
      () => null,
      ({ message }: Error) => message,
    );
    test.skip(missing !== null, missing ?? "");
  }
  await useBackend({ backend });
  const model = await loadCausalLM(microWorld());
  const { numTensors, numDataBuffers } = tf.memory();
  for (let i = 0; i < rounds; i++) {
    await evaluations[i % evaluations.length]!(model, i);
    expect(tf.memory()).toMatchObject({ numTensors, numDataBuffers });
  }
  model.dispose();
});

/** Evaluations of what feedback changes, with a few items each. */
const feedback = [
  { feedback: "logprob", preference: "concise" },
  { feedback: "compliance", preference: "concise", samples: 1, max_tokens: 4 },
  { feedback: "general", max_tokens: 4 },
  { feedback: "collapse", max_tokens: 4 },
];

/** Letters and cloze (packed and plain), generation, and feedback evaluations, each with its own seed. */
const evaluations = [
  ...(["letters", "cloze"] as const).flatMap((method) =>
    (["packed", "plain"] as const).map((scoring) => async (model: CheckpointLM, seed: number) => {
      const questions = microWorld("questions.jsonl");
      const evaluation = capabilityEvaluation({ questions, method, subsample: { n: 4, seed } });
      const guards = tfjsGuards(model);
      const { incremental: _, ...plain } = model;
      const measured = inMemory(scoring === "packed" ? model : plain, tokenizer);
      const { snapshot } = await measure(evaluation, measured, { guards });
      expect(snapshot.status).toBe("complete");
    }),
  ),
  ...feedback.map((entry) => async (model: CheckpointLM, seed: number) => {
    const evaluation = await feedbackEvaluations["feedback"]!(entry, "here");
    const options = { guards: tfjsGuards(model), seed: String(seed), limit: 2 };
    const { snapshot } = await measure(evaluation, inMemory(model, tokenizer), options);
    expect(snapshot.status).toBe("complete");
  }),
  async (model: CheckpointLM, seed: number) => {
    const requests = [0, 1].map((temperature) => ({
      prompt: { text: "Question: Where" },
      sampling: { maxNewTokens: 6, temperature, seed: String(seed) },
    }));
    const written = await inMemory(model, tokenizer).generate(requests, {
      signal: new AbortController().signal,
    });
    expect(written).toHaveLength(2);
  },
];
