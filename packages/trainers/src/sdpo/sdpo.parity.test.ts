import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import * as tf from "@tensorflow/tfjs-core";
import { createCausalLM, loadCausalLM, useBackend, type CheckpointLM } from "@periodic-eval/models";
import { loadTokenizer } from "@periodic-eval/models/tokenizer";
import type { Message, Prompt, Tokenizer } from "@periodic-eval/core";
import { describe, expect, it } from "vitest";
import { expectClose } from "../../../testing/src/expect-close.test-data.ts";
import { findFixtures, reportMissing } from "../../../testing/src/fixtures.test-data.ts";
import { isThere, nativeBackend } from "../../../models/src/testing/backends.test-data.ts";
import { needsPython, python, pythonHas } from "../../../models/src/testing/python.test-data.ts";
import { temporaryFolder, tinyLlama, tokenizer } from "../testing/tiny-run.test-data.ts";
import {
  batchesOf,
  savedWeights,
  startedLora,
  trainUpdates,
  updatesCases,
  workOf,
  type Answer,
  type UpdatesCase,
} from "./reference-updates.test-data.ts";

/** The result of PyTorch. */
interface Reference {
  /** Metrics of each of forty gradient steps, by name. */
  readonly steps: Readonly<Record<string, readonly number[]>>;
  /** Final weights, by their name in PEFT or transformers. */
  readonly weights: Readonly<Record<string, ArrayLike<number>>>;
}

/** The initial model and the batches of ten updates. */
interface Start {
  readonly base: () => Promise<CheckpointLM>;
  readonly tokenizer: Tokenizer;
  readonly batches: readonly (readonly Answer[])[];
  readonly teacherPrompt: (answer: Answer) => Prompt;
}

const backends = ["wasm", "cpu", nativeBackend];
/**
 * Forty steps in float32 against float64, on numbers up to 82. The largest differences on six models are 3.6e-5 in a norm of
 * 14.6, which is 38 float32 spacings, and 1.1e-5 in a ratio of 1.7. How a backend sums decides both.
 */
const tolerance = { absolute: 3e-5, relative: 3e-6 };
/** Adam turns the rounding of a gradient near 0 into part of a step, so weights differ more than losses. */
const weightTolerance = 1e-4;
/** A float64 sum in another order can change the seventh digit of a golden by one, a millionth of the number at most. */
const goldenTolerance = { relative: 2e-6 };

const idsBelow = (vocabSize: number, draw: (below: number) => number, length: number) =>
  Array.from({ length }, () => draw(vocabSize));

/** A model that every machine creates with the same bits, and prompts of ids. */
const made: Start = {
  base: async () => createCausalLM({ ...tinyLlama, vocab_size: 48 }, { seed: "sdpo", initStd: 0.3 }),
  tokenizer,
  batches: batchesOf((draw, length) => ({
    prompt: { ids: idsBelow(48, draw, 4 + draw(4)) },
    teacherPrompt: { ids: idsBelow(48, draw, 9 + draw(4)) },
    response: idsBelow(48, draw, length),
  })),
  teacherPrompt: ({ teacherPrompt }) => teacherPrompt!,
};

/** Runs the ten updates with SDPOTrainer on the current backend. */
async function train({ base: load, tokenizer, batches }: Start, { isLora, config }: UpdatesCase) {
  const base = await load();
  const model = isLora ? startedLora(base) : base;
  const { updates, folder } = await trainUpdates(model, tokenizer, config, batches);
  if (isLora) model.dispose();
  base.dispose();
  return { updates, weights: await savedWeights(folder, isLora) };
}

/** Compares every metric of every gradient step, and every weight that the reference contains. */
async function expectReference(start: Start, updatesCase: UpdatesCase, { steps, weights }: Reference) {
  const before = tf.memory().numTensors;
  const ours = await train(start, updatesCase);
  expect(tf.memory().numTensors).toBe(before);
  expect(ours.updates).toHaveLength(10);
  const found: readonly Readonly<Record<string, number | null>>[] = ours.updates
    .flat()
    .map((step) => ({ ...step }));
  expect(Object.keys(steps)).toContain("loss");
  for (const [name, numbers] of Object.entries(steps)) {
    expect(found.length, name).toBe(numbers.length);
    for (const [i, number] of numbers.entries())
      expectClose(found[i]![name]!, number, tolerance, `${name} of gradient step ${i}`);
  }
  expect(Object.keys(weights).length).toBeGreaterThan(4);
  for (const [name, expected] of Object.entries(weights))
    expect(furthest(ours.weights[name]!, expected), name).toBeLessThan(weightTolerance);
}

function furthest(one: ArrayLike<number>, other: ArrayLike<number>): number {
  expect(one).toHaveLength(other.length);
  return Math.max(...Array.from(one, (value, at) => Math.abs(value - other[at]!)));
}

const goldenFile = new URL("goldens/updates.json", import.meta.url);
interface Golden extends Reference {
  readonly name: string;
}
const goldens = (): readonly Golden[] =>
  (JSON.parse(readFileSync(goldenFile, "utf8")) as { readonly cases: readonly Golden[] }).cases;

describe.each(backends)("ten updates on %s", (backend) => {
  it.runIf(isThere(backend)).each(updatesCases.map((one) => [one.name, one] as const))(
    "equal PyTorch for %s: losses, norms and parts of forty steps, final weights",
    async (name, updatesCase) => {
      await useBackend({ backend });
      await expectReference(
        made,
        updatesCase,
        goldens().find((golden) => golden.name === name)!,
      );
    },
  );
});

const script = resolve(import.meta.dirname, "../../../../benchmarks/peers/torch_sdpo.py");

/** Runs the ten updates of every case in PyTorch. */
async function askTorch({ base: load, ...start }: Start): Promise<readonly Reference[]> {
  const base = await load();
  const model = await temporaryFolder();
  await base.save(model);
  const adapter = await temporaryFolder();
  const lora = startedLora(base);
  await lora.save(adapter);
  lora.dispose();
  base.dispose();
  const works = [];
  for (const { isLora, config } of updatesCases) {
    const work = workOf(start.tokenizer, config, start.batches, start.teacherPrompt);
    works.push({ model, adapter: isLora ? adapter : null, out: await temporaryFolder(), ...work });
  }
  const input = works.map((work) => `${JSON.stringify(work)}\n`).join("");
  const said = execFileSync(python, [script], { input, encoding: "utf8", stdio: "pipe", maxBuffer: 2 ** 26 });
  const found: Reference[] = [];
  for (const [i, line] of said.trim().split("\n").entries()) {
    const { steps } = JSON.parse(line) as Pick<Reference, "steps">;
    found.push({ steps, weights: await savedWeights(works[i]!.out, updatesCases[i]!.isLora) });
  }
  return found;
}

const isWriting = process.env["PERIODIC_EVAL_WRITE_GOLDENS"] === "1";

/** Rounds to seven digits and keeps only small tensors: errors in the others show in the losses. */
function goldenOf({ steps, weights }: Reference): Reference {
  const rounded = (values: ArrayLike<number>) => Array.from(values, (value) => Number(value.toPrecision(7)));
  const inDigits = (numbers: Readonly<Record<string, ArrayLike<number>>>) =>
    Object.fromEntries(Object.entries(numbers).map(([name, values]) => [name, rounded(values)]));
  const small = Object.entries(weights).filter(([, values]) => values.length <= 128);
  return { steps: inDigits(steps), weights: inDigits(Object.fromEntries(small)) };
}

const needs = needsPython("transformers and peft");

describe.skipIf(!pythonHas("peft", "transformers"))(`benchmarks/peers/torch_sdpo.py (${needs})`, () => {
  it("gives the numbers in goldens/updates.json", async () => {
    await useBackend({ backend: "wasm" });
    const cases = (await askTorch(made)).map((said, i) => ({
      name: updatesCases[i]!.name,
      ...goldenOf(said),
    }));
    const about =
      "Written by sdpo.parity.test.ts with PERIODIC_EVAL_WRITE_GOLDENS=1: what benchmarks/peers/torch_sdpo.py says (torch 2.13.0, CPU, float64).";
    if (isWriting) writeFileSync(goldenFile, `${JSON.stringify({ about, cases })}\n`);
    for (const [i, { name, steps, weights }] of goldens().entries()) {
      expect(name).toBe(cases[i]!.name);
      const [kept, said] = [
        { ...steps, ...weights },
        { ...cases[i]!.steps, ...cases[i]!.weights },
      ];
      expect(Object.keys(kept)).toEqual(Object.keys(said));
      for (const [key, values] of Object.entries(kept)) {
        expect(values).toHaveLength(said[key]!.length);
        for (const [i, value] of Array.from(values).entries())
          expectClose(value, said[key]![i]!, goldenTolerance, `${name}: ${key} ${i}`);
      }
    }
  });

  const folders = findFixtures(/^training[^/]*\/[^/]+\/tokenizer\.json$/).map((path) => dirname(path));
  if (folders.length === 0) reportMissing("training*/*/tokenizer.json");

  describe.each(folders)("on %s, with feedback", (folder) => {
    const words = ["warm", "rain", "seven", "blue", "tea", "north", "oak", "salt"];
    const said = (draw: (below: number) => number, count: number) =>
      Array.from({ length: count }, () => words[draw(words.length)]!).join(" ");

    it("equals SDPOTrainer in every case: losses, norms and parts of forty steps, final weights", async () => {
      await useBackend({ backend: "wasm" });
      const own = await loadTokenizer(folder);
      const answer = (draw: (below: number) => number, length: number) => [
        ...own.encode(said(draw, length), { specialTokens: false }).slice(0, 4 * length),
        own.stopIds[0]!,
      ];
      const start: Start = {
        base: () => loadCausalLM(folder),
        tokenizer: own,
        batches: batchesOf((draw, length) => ({
          prompt: { messages: [{ role: "user", content: said(draw, 3) }] },
          feedback: said(draw, 2),
          response: answer(draw, length),
        })),
        // The expected text of the default template, character by character.
        teacherPrompt: ({ prompt, feedback }) => {
          const [{ content }] = (prompt as { readonly messages: readonly [Message] }).messages;
          const appendix = `Feedback on an earlier answer to this: ${feedback}\nAnswer again, and follow the feedback.`;
          return { messages: [{ role: "user", content: `${content}\n\n${appendix}` }] };
        },
      };
      const torch = await askTorch(start);
      for (const [i, updatesCase] of updatesCases.entries())
        await expectReference(start, updatesCase, torch[i]!);
    });
  });
});
