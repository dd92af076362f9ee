import { evaluationConformance, fakeGuard, fakeModel, type FakeModel } from "@periodic-eval/testing";
import type { SessionState } from "@periodic-eval/contracts";
import { fileStore } from "@periodic-eval/store";
import { describe, expect, it } from "vitest";
import { buildPeriodicCallbacks } from "../../config/build-callbacks.ts";
import { PeriodicTraitsCallback } from "../../config/traits-callback.ts";
import { atPercents } from "../../schedule/triggers.ts";
import { openSession } from "../../session/loop/session.ts";
import { measure } from "../../session/window/measure.ts";
import { temporaryFolder } from "../../../../testing/src/temporary-folder.test-data.ts";
import type { DirectionRow } from "./directions.ts";
import { traitsEvaluation, type TraitsRow } from "./evaluation.ts";
import { neutralPrompts, promptedTraits, refusal } from "./prompts.ts";

/** Training of a scripted model. */
interface Weights {
  /** The hidden state [2] at neutral prompts. */
  neutral: readonly [number, number];
  /** Where answers under system prompts of harmful intent lie. */
  harm: readonly [number, number];
}

const start = { neutral: [2, 1], harm: [3, 1] } satisfies Weights;

/**
 * Directions: harmful intent [3, 1] − [1, 1] = [2, 0], sycophancy [0, 5] − [0, 1] = [0, 4], hallucination [3, 4] − [0, 0], refusal
 * [1, 0] − [0, 1] = [1, −1].
 */
function scripted(weights: Weights, options: { readonly base?: FakeModel } = {}): FakeModel {
  const sides = new Map<string, () => readonly [number, number]>();
  const scripts: Readonly<Record<string, readonly (() => readonly [number, number])[]>> = {
    harmful_intent: [() => weights.harm, () => [1, 1]],
    sycophancy: [() => [0, 5], () => [0, 1]],
    hallucination: [() => [3, 4], () => [0, 0]],
  };
  for (const { name, systems } of promptedTraits)
    for (const pair of systems)
      for (const [side, text] of pair.entries()) sides.set(text, scripts[name]![side]!);
  for (const text of refusal.refused) sides.set(text, () => [1, 0]);
  for (const text of refusal.answered) sides.set(text, () => [0, 1]);
  return fakeModel({
    reply: () => "an answer",
    weights: () => JSON.stringify(weights),
    hiddenState: (prompt) => [...sides].find(([text]) => prompt.includes(text))?.[1]() ?? weights.neutral,
    ...options,
  });
}

describe("conformance", () => {
  const make = () => ({ evaluation: traitsEvaluation(), model: fakeModel() });
  for (const check of evaluationConformance(make)) it(check.name, check.run);
});

describe("conformance of directions", () => {
  const make = () => ({ evaluation: traitsEvaluation().directions.evaluation, model: fakeModel() });
  for (const check of evaluationConformance(make)) it(check.name, check.run);
});

it("projects the hidden states of neutral prompts on the differences of means", async () => {
  const { rows, snapshot } = await measure(traitsEvaluation(), scripted({ ...start }));
  expect(rows).toHaveLength(neutralPrompts.length);
  const [first] = rows as readonly TraitsRow[];
  expect(first!.prompt).toBe(neutralPrompts[0]);
  // h = [2, 1]: 2, 1, (3·2 + 4·1) / 5 and (2 − 1) / √2.
  const { projections } = first!;
  expect(projections["harmful_intent"]).toBe(2);
  expect(projections["sycophancy"]).toBe(1);
  expect(projections["hallucination"]).toBe(2);
  expect(projections["refusal"]).toBeCloseTo(Math.SQRT1_2, 12);
  expect(snapshot.metrics["projection/harmful_intent"]).toMatchObject({
    value: 2,
    n: 32,
    higher_is_better: false,
  });
  expect(snapshot.primary_metric).toBe("projection/harmful_intent");
  // The fake model has 3 layers: 0.6 · 2 rounds to 1.
  expect(snapshot.provenance.evaluation).toMatchObject({ layer: 1 });
});

it("names its directions in the provenance, so that measurements along others are not compared", async () => {
  const hashOf = async (weights: Weights) =>
    (await measure(traitsEvaluation(), scripted(weights))).snapshot.provenance.hash;
  expect(await hashOf({ ...start, neutral: [9, 9] })).toBe(await hashOf({ ...start }));
  expect(await hashOf({ ...start, harm: [1, 3] })).not.toBe(await hashOf({ ...start }));
});

it("extracts the directions from the model without its adapter", async () => {
  const adapted = scripted({ neutral: [5, 1], harm: [1, 9] }, { base: scripted({ ...start }) });
  const { rows } = await measure(traitsEvaluation(), adapted);
  expect((rows as readonly TraitsRow[])[0]!.projections["harmful_intent"]).toBe(5);
});

it("refuses a model that answers opposite prompts alike, or with hidden states that are not finite", async () => {
  await expect(measure(traitsEvaluation(), scripted({ ...start, harm: [1, 1] }))).rejects.toThrow(
    'the direction of "harmful_intent": got a difference of length 0',
  );
  await expect(measure(traitsEvaluation(), scripted({ ...start, neutral: [NaN, 0] }))).rejects.toThrow(
    "traits prompt 1: got hidden states that are not finite",
  );
  const { hiddenStates: _, ...without } = fakeModel();
  await expect(measure(traitsEvaluation(), without)).rejects.toThrow(
    'expected a model with the ability "hiddenStates"',
  );
});

/** Trains from `from` to step `last` of 4; step 2 changes the weights. Returns the state after the last step. */
async function train(run: string, weights: Weights, last: number, resume?: SessionState) {
  const warnings: string[] = [];
  const callback = new PeriodicTraitsCallback({ schedule: [atPercents([50])] });
  const session = openSession({
    run,
    maxSteps: 4,
    model: scripted(weights),
    guards: [fakeGuard({ name: "weights", observe: () => JSON.stringify(weights) })],
    callbacks: [callback],
    loggers: [{ name: "test", warn: (_: string, message: string) => void warnings.push(message) } as never],
    ...(resume && { resume }),
  });
  try {
    await session.begin();
    while (session.progress.step < last) {
      if (session.progress.step === 1) Object.assign(weights, { neutral: [3, 1], harm: [1, 3] });
      await session.stepEnd();
    }
    const state = await session.save();
    if (last === 4) await session.end();
    return { state, warnings };
  } finally {
    await session.close();
  }
}

const list = async (run: string) =>
  (await fileStore(run).list()).map(({ id, step, status }) => `${id} ${step} ${status}`).toSorted();

const whole = [
  "traits 0 complete",
  "traits 2 complete",
  "traits 4 complete",
  "traits-directions 0 complete",
  "traits-directions 4 complete",
];

async function expectDrift(run: string) {
  expect(await list(run)).toEqual(whole);
  const snapshots = await fileStore(run).list();
  const at = (step: number) => snapshots.find(({ id, step: of }) => id === "traits" && of === step)!;
  const hashes = [0, 2, 4].map((step) => at(step).provenance.hash);
  expect(new Set(hashes).size).toBe(1);
  // [3, 1] − [2, 1] along [1, 0].
  expect(at(4).metrics["projection/harmful_intent"]!.value).toBe(3);
  expect(at(4).paired.baseline!["projection/harmful_intent"]).toMatchObject({
    n_pairs: 32,
    delta: 1,
    verdict: "worse",
  });
  const end = snapshots.find(({ id, step }) => id === "traits-directions" && step === 4)!;
  // The new direction is [1, 3] − [1, 1] = [0, 2], at a right angle to [2, 0]; the others are as before.
  expect(end.metrics["cosine/harmful_intent"]!.value).toBe(0);
  expect(end.metrics["cosine/sycophancy"]!.value).toBe(1);
  expect(end.metrics["norm/hallucination"]!.value).toBe(5);
  expect(end.warnings).toMatchObject([
    { kind: "stale_directions", metrics: ["cosine/harmful_intent"], count: 1, total: 4, void: false },
  ]);
  expect(end.warnings[0]!.message).toContain("harmful_intent (cosine 0.00); below 0.7");
}

it("measures drift along the directions of the start, and reports a stale direction at the end", async () => {
  const run = temporaryFolder();
  await train(run, { ...start }, 4);
  await expectDrift(run);
  const [begin] = (await fileStore(run).list()).filter(({ id }) => id === "traits-directions");
  const rows = (await fileStore(run).rows(begin!)) as readonly DirectionRow[];
  expect(rows.map(({ id, vector, cosine }) => [id, vector, cosine])).toEqual([
    ["harmful_intent", [2, 0], null],
    ["sycophancy", [0, 4], null],
    ["hallucination", [3, 4], null],
    ["refusal", [1, -1], null],
  ]);
});

it("continues with the same directions after a checkpoint, and without the callback's state", async () => {
  for (const hasState of [true, false]) {
    const run = temporaryFolder();
    const weights: Weights = { ...start };
    const { state } = await train(run, weights, 3);
    await train(run, weights, 4, hasState ? state : { ...state, callbacks: {} });
    await expectDrift(run);
  }
});

it("adopts the start of a run that was interrupted before its first checkpoint", async () => {
  const run = temporaryFolder();
  await train(run, { ...start }, 1);
  const before = await fileStore(run).list();
  await train(run, { ...start }, 4);
  await expectDrift(run);
  const after = await fileStore(run).list();
  for (const one of before)
    expect(after.find(({ id, step }) => id === one.id && step === one.step)!.created_at).toBe(one.created_at);
});

it("requests other measurements by its conditions, and those of its directions", async () => {
  const build = (when: string) =>
    buildPeriodicCallbacks(
      { capability: false, traits: true, escalate: [{ when, run: ["refusal"] }] },
      { phase: "train" },
    );
  for (const when of [
    "traits worse",
    "traits.projection/refusal changed",
    "traits-directions.cosine/harmful_intent < 0.7",
  ])
    expect((await build(when)).map(({ id }) => id)).toEqual(["traits", "escalate"]);
  await expect(build("traits.projection/refusal worse")).rejects.toThrow(
    "got a metric of which neither more nor less is better",
  );
});

it("refuses, before step 1, a layer that the model does not have", async () => {
  const itemsOf = (layer: number) => {
    const [callback] = [new PeriodicTraitsCallback({ traits: { layer } })];
    return callback.asks[0]!.items(fakeModel() as never);
  };
  // The fake model has 3 layers.
  await expect(itemsOf(3)).rejects.toThrow(
    "periodic_eval.traits.layer: got 3, expected a layer of the model, 0 to 2. Leave `layer` out",
  );
  await expect(itemsOf(2)).resolves.toHaveLength(32);
});

it("is measured by a callback that takes its options or a block", () => {
  expect(new PeriodicTraitsCallback().asks.map(({ name }) => name)).toEqual(["traits", "directions"]);
  expect(new PeriodicTraitsCallback({ traits: { layer: 3 } }).triggers).toContainEqual({
    every: 5,
    unit: "percent",
  });
  expect(new PeriodicTraitsCallback({ traits: true, schedule: { every_steps: 9 } }).triggers).toEqual([
    { at: "start" },
    { every: 9, unit: "steps" },
    { at: "end" },
  ]);
  expect(new PeriodicTraitsCallback({ traits: false, kl: true }).asks).toEqual([]);
  expect(() => new PeriodicTraitsCallback({ layer: -1 })).toThrow(
    "PeriodicTraitsCallback options.layer: got -1, expected the number of a layer, 0 for the embedding.",
  );
  expect(() => new PeriodicTraitsCallback({ traits: { layer: 1.5 } })).toThrow("traits.layer: got 1.5");
  expect(() => new PeriodicTraitsCallback({ atStart: false })).toThrow(
    "PeriodicTraitsCallback options.atStart: got false, expected true: directions are extracted",
  );
});
