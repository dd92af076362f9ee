import * as tf from "@tensorflow/tfjs-core";
import { atSteps, defineEvaluation, PeriodicCallback, withSession } from "@periodic-eval/core";
import { createCausalLM, useBackend } from "@periodic-eval/models";
import { beforeAll, describe, expect, it } from "vitest";
import { notIntact, snapshotsOf } from "../testing/recorded-training.test-data.ts";
import {
  temporaryFolder,
  tinyLlama,
  tokenizer,
  ungoverned,
  weightsOf,
} from "../testing/tiny-run.test-data.ts";
import type { SDPOExample } from "./example.ts";
import {
  answers,
  promptOf,
  config,
  drawn,
  responseOf,
  withModel,
  withTrainer,
} from "./sdpo-run.test-data.ts";
import { SDPOTrainer } from "./sdpo-trainer.ts";

beforeAll(async () => {
  await useBackend({ backend: "wasm" });
});

describe("SDPOTrainer", () => {
  it("moves towards the teacher with the feedback, leaves no tensor, and leaves the base unchanged", async () => {
    const before = tf.memory().numTensors;
    await withModel(async (model, base) => {
      const own = await weightsOf(base);
      await withTrainer({ model }, async (trainer) => {
        const updates = [];
        for (let i = 0; i < 6; i += 1) {
          const old = await trainer.logProbs(answers);
          updates.push(await trainer.update(answers.map((one, j) => ({ ...one, oldLogProbs: old[j]! }))));
        }
        expect(updates.map(({ update }) => update)).toEqual([1, 2, 3, 4, 5, 6]);
        // 4 + 2 + 8 tokens, each with its stop token.
        expect(updates.map(({ tokens }) => tokens)).toEqual(Array(6).fill(14));
        const [first, last] = [updates[0]!.steps[0]!, updates.at(-1)!.metrics];
        expect(updates[0]!.steps).toHaveLength(4);
        expect(updates[0]!.metrics).toBe(updates[0]!.steps[3]);
        // On-policy answers, with an adapter that has learned nothing.
        expect(first.mean_is_ratio).toBeCloseTo(1, 5);
        expect(first.kl_reg).toBeCloseTo(0, 6);
        expect(first.clip_fraction).toBe(0);
        expect(first.loss).toBe(first.distill_loss);
        expect(last.distill_loss).toBeLessThan(0.7 * first.distill_loss);
        expect(last.kl_reg).toBeGreaterThan(1e-4);
        expect(last.teacher_log_prob).toBe(first.teacher_log_prob);
      });
      expect(await weightsOf(base)).toEqual(own);
    });
    expect(tf.memory().numTensors).toBe(before);
  });

  it("reads a current teacher again at each gradient step, with the adapter on", async () => {
    await withModel(async (model) => {
      await withTrainer({ model, config: { ...config, teacher: "current" } }, async (trainer) => {
        const { steps } = await trainer.update(drawn());
        expect(new Set(steps.map((step) => step.teacher_log_prob)).size).toBe(4);
        const feedback = "{prompt}\n\nFeedback on an earlier answer to this: {feedback}";
        expect(trainer.config.hindsight.startsWith(feedback)).toBe(true);
      });
    });
  });

  it("trains a model without an adapter with a current teacher, and returns kl_reg null", async () => {
    const model = createCausalLM(tinyLlama, { seed: "whole", initStd: 0.3 });
    expect(() => new SDPOTrainer({ model, tokenizer })).toThrow(
      expect.objectContaining({
        where: "SDPO config.teacher",
        got: '"base" for a model without an adapter',
        expected: "a model with a base",
      }),
    );
    expect(
      () => new SDPOTrainer({ model, tokenizer, config: { teacher: "current", klRegWeight: 0.5 } }),
    ).toThrow(
      expect.objectContaining({
        where: "SDPO config.klRegWeight",
        got: "0.5 for a model without an adapter",
      }),
    );
    await withTrainer({ model, config: { ...config, teacher: "current" } }, async (trainer) => {
      const { metrics } = await trainer.update(drawn());
      expect(metrics.kl_reg).toBeNull();
      expect(metrics.grad_norm).toBeGreaterThan(0);
    });
    model.dispose();
  });

  it("equals one pass for passes of one example, within 1e-5", async () => {
    const trained = (microBatchSize: number) =>
      withModel((model) =>
        withTrainer({ model, config: { ...config, microBatchSize, klRegWeight: 0.1 } }, async (trainer) => ({
          steps: (await trainer.update(drawn())).steps,
          weights: (await weightsOf(model)).flat(),
        })),
      );
    const [whole, cut] = [await trained(3), await trained(1)];
    for (const [i, step] of whole.steps.entries())
      for (const [name, value] of Object.entries(step))
        expect(cut.steps[i]![name as keyof typeof step], name).toBeCloseTo(value as number, 5);
    const furthest = whole.weights.map((value, i) => Math.abs(value - cut.weights[i]!));
    expect(Math.max(...furthest)).toBeLessThan(1e-5);
  });

  it("puts the feedback into the last user turn, and replaces no placeholder inside prompt or feedback", async () => {
    const turns = [
      { role: "system", content: "s" },
      { role: "user", content: "first" },
      { role: "assistant", content: "x" },
      { role: "user", content: "{feedback} $&" },
    ];
    const messages = [...turns.slice(0, 3), { role: "user", content: "<{feedback} $&|{prompt} $1>" }];
    const one = { prompt: { messages: turns }, response: responseOf("ab") };
    const by = (example: Omit<SDPOExample, "oldLogProbs">) =>
      withModel((model) =>
        withTrainer({ model, config: { ...config, hindsight: "<{prompt}|{feedback}>" } }, async (trainer) => {
          return (await trainer.update(drawn([example]))).steps;
        }),
      );
    expect(await by({ ...one, feedback: "{prompt} $1" })).toEqual(
      await by({ ...one, teacherPrompt: { messages } }),
    );
    expect(await by({ ...one, feedback: "other" })).not.toEqual(
      await by({ ...one, feedback: "{prompt} $1" }),
    );
  });

  it("trains without dropout by default; otherwise from streams that name the gradient step", async () => {
    const trained = (disableDropout: boolean, dropout: number) =>
      withModel(
        (model) =>
          withTrainer({ model, config: { ...config, disableDropout } }, async (trainer) => {
            return (await trainer.update(drawn())).steps;
          }),
        { dropout },
      );
    expect(await trained(true, 0.3)).toEqual(await trained(true, 0));
    const busy = await trained(false, 0.3);
    expect(busy).not.toEqual(await trained(true, 0));
    expect(await trained(false, 0.3)).toEqual(busy);
  });

  it("returns the log-probs of the current model", async () => {
    await withModel((model) =>
      withTrainer({ model }, async (trainer) => {
        const [first] = await trainer.logProbs(answers);
        const { ids } = tokenizer.render(answers[0]!.prompt);
        const whole = [...ids, ...answers[0]!.response];
        const ofAll = tf.tidy(() =>
          tf.logSoftmax(model.logits(tf.tensor2d([whole], [1, whole.length], "int32"))).dataSync(),
        );
        const expected = answers[0]!.response.map(
          (id, i) => ofAll[(ids.length + i - 1) * model.vocabSize + id]!,
        );
        for (const [i, value] of first!.entries()) expect(value).toBeCloseTo(expected[i]!, 5);
      }),
    );
  });

  const good = { ...answers[0]!, oldLogProbs: answers[0]!.response.map(() => -1) };
  it.each<[string, object, string]>([
    ["no answer", { response: [], oldLogProbs: [] }, "SDPO example 1.response: got no token"],
    [
      "an id outside the vocabulary",
      { response: [9999], oldLogProbs: [-1] },
      "response: got 9999 at index 0, expected token ids from 0 to",
    ],
    ["too few log-probs", { oldLogProbs: [-1] }, "oldLogProbs: got 1 numbers, expected 4 log-probs"],
    [
      "undefined among ids",
      { response: [5, undefined] },
      "response: got undefined at index 1, expected token ids",
    ],
    [
      "undefined among log-probs",
      { oldLogProbs: [-1, undefined, -1, -1] },
      "oldLogProbs: got undefined at index 1",
    ],
    ["a string for ids", { response: "abc" }, 'response: got "abc", expected token ids'],
    [
      "an id outside the vocabulary in the prompt",
      { prompt: { ids: [1, 9999] } },
      "1.prompt: got 9999 at index 1",
    ],
    ["an empty prompt", { prompt: { ids: [] } }, "example 1.prompt: got no token"],
    ["a probability", { oldLogProbs: [-1, 0.5, -1, -1] }, "oldLogProbs: got 0.5 at index 1"],
    ["NaN", { oldLogProbs: [-1, Number.NaN, -1, -1] }, "oldLogProbs: got NaN"],
    ["no feedback", { feedback: undefined }, "feedback: got neither feedback nor teacherPrompt"],
    ["both", { teacherPrompt: { ids: [1] } }, "feedback: got both feedback and teacherPrompt"],
    ["empty feedback", { feedback: " " }, 'feedback: got " ", expected a non-empty string'],
    ["no user turn", { prompt: { ids: [1, 2] } }, "feedback: got feedback for a prompt without a user turn"],
    ["a long prompt", { prompt: promptOf("a".repeat(130)) }, "SDPO example 1.prompt: got 1"],
    ["a long feedback", { feedback: "a".repeat(130) }, "SDPO example 1.teacherPrompt: got 219 tokens"],
    ["a misspelt key", { oldLogprobs: [] }, 'Did you mean "oldLogProbs"?'],
  ])("throws for an example with %s, before anything changes", async (_, wrong, message) => {
    await withModel((model) =>
      withTrainer({ model }, async (trainer) => {
        const before = await weightsOf(model);
        const tensors = tf.memory().numTensors;
        await expect(trainer.update([good, { ...good, ...wrong }])).rejects.toThrow(message);
        expect(await weightsOf(model)).toEqual(before);
        expect([trainer.updates, tf.memory().numTensors]).toEqual([0, tensors]);
      }),
    );
  });

  it("throws for an empty batch, and for an update of NaN, which leaves the weights unchanged", async () => {
    await withModel((model) =>
      withTrainer({ model }, async (trainer) => {
        await expect(trainer.update([])).rejects.toMatchObject({
          where: "SDPOTrainer.update",
          got: "an empty batch",
        });
        const [broken] = model.trainables();
        tf.tidy(() => broken!.assign(tf.fill(broken!.shape, Number.NaN)));
        const before = await weightsOf(model);
        await expect(trainer.update(drawn())).rejects.toThrow(
          /phase sdpo, update 1, gradient step 1: got a loss of NaN/,
        );
        expect(await weightsOf(model)).toEqual(before);
      }),
    );
  });
});

it("can be measured by a caller's session, one step per update, without being disturbed", async () => {
  const seen = defineEvaluation({
    name: "seen",
    version: "1",
    needs: ["logLikelihoods"],
    items: () => [{ id: "one" }],
    async measure(model, items, { signal }) {
      const [found] = await model.logLikelihoods([{ context: { text: "ab" }, continuation: "c" }], {
        signal,
      });
      return items.map((item) => ({ ...item, nats: found!.sumNats }));
    },
    metrics: ({ mean }) => ({ nats: mean((row) => row.nats) }),
  });
  const train = (isMeasured: boolean) =>
    withModel(async (model) => {
      const run = await temporaryFolder();
      await withTrainer({ model, runDir: run }, async (trainer) => {
        const { evaluableModel, guards } = trainer;
        const callbacks = isMeasured
          ? [new PeriodicCallback(seen, { id: "seen", schedule: [atSteps([1, 3])] })]
          : [];
        const options = {
          run,
          phase: "sdpo",
          maxSteps: 3,
          model: evaluableModel,
          guards,
          callbacks,
          loggers: [],
          ...ungoverned,
        };
        await withSession(options, async (session) => {
          await session.begin();
          for (const batch of [drawn(), drawn(), drawn()]) {
            await session.stepBegin();
            const { metrics } = await trainer.update(batch);
            await session.stepEnd({ metrics: { loss: metrics.loss } });
          }
          await trainer.save({ session: await session.save() });
          await session.end();
        });
        const found = await trainer.resume();
        expect(found!.state.session.progress.step).toBe(3);
      });
      return { run, weights: await weightsOf(model) };
    });
  const [measured, plain] = [await train(true), await train(false)];
  expect(measured.weights).toEqual(plain.weights);
  const snapshots = await snapshotsOf(measured.run);
  expect(snapshots.map(({ step }) => step)).toEqual([0, 1, 3]);
  expect(notIntact(snapshots)).toEqual([]);
});
