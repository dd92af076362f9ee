import { cp, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { PeriodicCallback } from "../../callback/periodic-callback.ts";
import type {
  TrainerCallback,
  AnyEvaluation,
  Snapshot,
  SessionOptions,
  SessionState,
} from "@periodic-eval/contracts";
import { klEvaluation } from "../../evaluations/kl/evaluation.ts";
import { everyPercent } from "../../schedule/triggers.ts";
import { fileStore } from "@periodic-eval/store";
import { fakeModel } from "@periodic-eval/testing";
import {
  gate,
  toyEvaluation,
  toyTraining,
  type ToyEvaluationOptions,
} from "../../../../testing/src/toy-training.test-data.ts";
import { withSession } from "../loop/session.ts";
import { temporaryFolder } from "../../../../testing/src/temporary-folder.test-data.ts";

const folder = temporaryFolder(afterAll);

const of = (evaluation: AnyEvaluation, on: "model" | "base" = "model") =>
  new PeriodicCallback(evaluation, { schedule: [everyPercent(50)], on });
const watch = (options: ToyEvaluationOptions = {}) => of(toyEvaluation(options));

/** A training whose model has an adapter: its base gives the same answers at every step. */
function adapterTraining() {
  const toy = toyTraining();
  const base = fakeModel({ weights: () => "base" });
  const model = fakeModel({ weights: () => String(toy.weights), base });
  return { toy, base, model };
}

/** Trains up to a step of a phase of ten. */
async function train(
  toy: ReturnType<typeof toyTraining>,
  callbacks: readonly TrainerCallback[],
  changes: Partial<SessionOptions>,
  last = 10,
): Promise<SessionState> {
  return withSession(toy.options(callbacks, changes), async (session) => {
    await session.begin();
    while (session.progress.step < last) {
      toy.step();
      await session.stepEnd();
    }
    return session.save();
  });
}

const describeSnapshot = ({ id, step, on, status }: Snapshot) => `${id}/${step} ${on} ${status}`;
const paired = async (toy: ReturnType<typeof toyTraining>, step: number) =>
  (await toy.store.get({ phase: "train", id: "toy", step }))!.paired.baseline?.["hit_rate"];

describe("adapter_off", () => {
  it("measures the same items once without the adapter, before the first measurement, which is compared with it", async () => {
    const { toy, model, base } = adapterTraining();
    await train(toy, [watch()], { model, baseline: "adapter_off" });
    expect((await toy.store.list()).map(describeSnapshot)).toEqual([
      "toy/0 model complete",
      "toy.adapter_off/0 base complete",
      "toy/5 model complete",
      "toy/10 model complete",
    ]);
    expect(base.calls.generate).toBe(1);
    const [model0, base0] = [
      await toy.store.rows({ phase: "train", id: "toy", step: 0 }),
      await toy.store.rows({ phase: "train", id: "toy.adapter_off", step: 0 }),
    ];
    expect(base0.map(({ id }) => id)).toEqual(model0.map(({ id }) => id));
    const rate = (rows: typeof base0) =>
      rows.filter((row) => "hit" in row && row.hit === true).length / rows.length;
    for (const step of [0, 5, 10]) {
      const rows = await toy.store.rows({ phase: "train", id: "toy", step });
      // Three comparisons, including the start: 0.05 / 3 each.
      expect(await paired(toy, step)).toMatchObject({
        phase: "train",
        step: 0,
        id: "toy.adapter_off",
        n_pairs: 8,
        alpha: expect.closeTo(0.05 / 3, 10),
      });
      expect((await paired(toy, step))!.delta).toBeCloseTo(rate(rows) - rate(base0), 10);
    }
  });

  it("is not repeated by a resume at a later step or from the start", async () => {
    const { toy, model, base } = adapterTraining();
    const options = { model, baseline: "adapter_off" } as const;
    const start = await train(toy, [watch()], options, 0);
    const half = await train(toy, [watch()], { ...options, resume: start }, 6);
    expect(base.calls.generate).toBe(1);
    await train(toy, [watch()], { ...options, resume: half });
    expect(base.calls.generate).toBe(1);
    expect(await paired(toy, 10)).toMatchObject({ id: "toy.adapter_off", n_pairs: 8 });
    expect(toy.warnings()).toEqual([]);
  });

  it("is compared with after its background grading, and after that of a resume", async () => {
    const { toy, model } = adapterTraining();
    const { passed, open } = gate();
    let graded = 0;
    // The grading of the baseline ends one turn of the event loop after that of the first measurement could.
    const onGrade = () => (graded++ === 0 ? passed : void setImmediate(open));
    await train(toy, [watch({ graded: true, onGrade })], { model, baseline: "adapter_off" });
    for (const step of [0, 5, 10]) expect(await paired(toy, step)).toMatchObject({ n_pairs: 8 });

    const cut = adapterTraining();
    const options = { model: cut.model, baseline: "adapter_off", budget: { drainSeconds: 0 } } as const;
    const never = new Promise<void>(() => {});
    const state = await train(cut.toy, [watch({ graded: true, onGrade: () => never })], options, 6);
    const statuses = (await cut.toy.store.list()).map(({ status }) => status);
    expect([statuses.length, ...new Set(statuses)]).toEqual([4, "grading"]);
    await train(cut.toy, [watch({ graded: true })], { ...options, budget: {}, resume: state });
    for (const step of [0, 5, 10]) expect(await paired(cut.toy, step)).toMatchObject({ n_pairs: 8 });
  });

  it("is measured in full with the first measurement if the start is not measured", async () => {
    const { toy, model } = adapterTraining();
    const late = new PeriodicCallback(toyEvaluation(), { schedule: [everyPercent(50)], atStart: false });
    await train(toy, [late], { model, baseline: "adapter_off", budget: { overheadPercent: 1e-9 } });
    expect(await toy.store.get({ phase: "train", id: "toy.adapter_off", step: 5 })).toMatchObject({
      status: "complete",
      timing: { governor: "whole, 8 items: the baseline is never reduced" },
    });
    expect(await paired(toy, 10)).toMatchObject({ step: 5, id: "toy.adapter_off", n_pairs: 8 });
  });

  it("keeps the start as the baseline of evaluations of the base, and warns of those that need the adapter", async () => {
    const { toy, model } = adapterTraining();
    const bare = toyEvaluation({ name: "bare" });
    const prompts = { ...toyEvaluation(), prompts: () => Array.from({ length: 8 }, () => ({ text: "a" })) };
    const callbacks = [of(bare, "base"), of(klEvaluation({ of: prompts }) as AnyEvaluation)];
    await train(toy, callbacks, { model, baseline: "adapter_off" });
    expect((await toy.store.list()).filter(({ id }) => id.includes("adapter_off"))).toEqual([]);
    const end = await toy.store.get({ phase: "train", id: "bare", step: 10 });
    expect(end!.paired.baseline!["hit_rate"]).toMatchObject({ step: 0, n_pairs: 8 });
    expect(toy.warnings()).toEqual([
      expect.stringContaining('"kl_to_base" is not compared: it cannot be measured without the adapter: '),
    ]);
  });

  it("warns of each evaluation of one callback that cannot be measured without the adapter", async () => {
    const { toy, model } = adapterTraining();
    const prompts = { ...toyEvaluation(), prompts: () => Array.from({ length: 8 }, () => ({ text: "a" })) };
    const asks = [1, 2].map((limit) => klEvaluation({ of: prompts, limit }) as AnyEvaluation);
    await train(toy, [{ id: "both", asks }], { model, baseline: "adapter_off" });
    const warning = expect.stringContaining(
      '"both" is not compared: it cannot be measured without the adapter: ',
    );
    expect(toy.warnings()).toEqual([warning, warning]);
  });

  it("throws without an adapter, and if a callback has its id", async () => {
    const { toy, model } = adapterTraining();
    const options = { baseline: "adapter_off" } as const;
    await expect(train(toy, [watch()], options)).rejects.toThrow("which has no adapter to switch off");
    const same = new PeriodicCallback(toyEvaluation({ name: "x" }), { schedule: [], id: "toy.adapter_off" });
    await expect(train(toy, [watch(), same], { ...options, model })).rejects.toThrow('the baseline of "toy"');
  });
});

describe("the path of an earlier run", () => {
  const earlier = async (name: string, options: ToyEvaluationOptions = {}, phase = "train") => {
    const toy = toyTraining();
    await train(toy, [watch(options)], { run: fileStore(join(folder, name)), phase });
    return join(folder, name);
  };
  const from = (baseline: string, options: ToyEvaluationOptions = {}) => {
    const toy = toyTraining();
    toy.weights = 3;
    return { toy, done: train(toy, [watch(options)], { baseline }) };
  };

  it("compares every measurement with the run's start, given the run's folder, its snapshots' folder or a phase's", async () => {
    const run = await earlier("whole");
    for (const path of [run, join(run, "periodic_eval"), join(run, "periodic_eval", "train")]) {
      const { toy, done } = from(path);
      await done;
      const rows = await fileStore(run).rows({ phase: "train", id: "toy", step: 0 });
      const now = await toy.store.rows({ phase: "train", id: "toy", step: 5 });
      const hits = (all: typeof rows) => all.filter((row) => "hit" in row && row.hit === true).length;
      expect(await paired(toy, 5)).toMatchObject({
        phase: "train",
        step: 0,
        run: path,
        n_pairs: 8,
        delta: expect.closeTo((hits(now) - hits(rows)) / 8, 10),
      });
      for (const step of [0, 10]) expect(await paired(toy, step)).toMatchObject({ run: path, n_pairs: 8 });
    }
  });

  it("takes the start of another phase if the run has no phase of this name", async () => {
    const { toy, done } = from(await earlier("coupling", {}, "coupling"));
    await done;
    expect(await paired(toy, 5)).toMatchObject({ phase: "coupling", step: 0, n_pairs: 8 });
  });

  it("throws before anything is measured for a start with another setup, and names the differences", async () => {
    const wrong = [
      [{ items: 5 }, "the option items 5 (here 8), other items (5, here 8)"],
      [{ version: "0" }, "the version 0 (here 1)"],
    ] as const;
    for (const [options, message] of wrong) {
      const { toy, done } = from(await earlier(`other-${message.length}`, options));
      await expect(done).rejects.toThrow(message);
      expect(await toy.store.list()).toEqual([]);
    }
    const failing = { onMeasure: () => Promise.reject(new Error("no luck")) };
    await expect(from(await earlier("failed", failing)).done).rejects.toThrow('the status "failed"');
  });

  it("throws for a run without snapshots or without any of these evaluations, and warns if one is missing", async () => {
    await expect(from(join(folder, "nowhere")).done).rejects.toThrow("which has no snapshot");
    const run = await earlier("named", { name: "another" });
    await expect(from(run).done).rejects.toThrow('has no start of "toy"');
    const toy = toyTraining();
    await train(toy, [watch(), watch({ name: "another" })], { baseline: run });
    expect(toy.warnings()).toEqual([`comparison: "toy" is not compared: ${run} has no start of it`]);
    const snapshot = await toy.store.get({ phase: "train", id: "another", step: 5 });
    expect(snapshot!.paired.baseline!["hit_rate"]).toMatchObject({ run, n_pairs: 8 });
  });

  it("does not use a partial start, even for an evaluation that only a reaction requests", async () => {
    const run = await earlier("partial");
    await cp(await earlier("others", { name: "another" }), run, { recursive: true, force: false });
    const key = { phase: "train", id: "toy", step: 0 };
    const store = fileStore(run);
    await store.put({ ...(await store.get(key))!, status: "partial" }, await store.rows(key));
    await store.close!();
    const toy = toyTraining();
    const reaction: TrainerCallback = {
      id: "reaction",
      asks: [toyEvaluation()],
      onSnapshot(context, { step, id }) {
        if (id === "another" && step === 5)
          context.measure({ id: "toy", evaluation: toyEvaluation(), crossed: [] });
      },
    };
    await train(toy, [watch({ name: "another" }), reaction], { baseline: run });
    expect(await paired(toy, 5)).toBeUndefined();
    expect(toy.warnings()).toEqual([
      'comparison: train/toy/5 is not compared with train/toy/0: its status is "partial"',
    ]);
  });

  it("warns of a snapshot that cannot be read", async () => {
    const run = await earlier("damaged");
    const file = join(run, "periodic_eval", "train", "toy_step_5.json");
    await writeFile(file, "{");
    const { toy, done } = from(run);
    await done;
    expect(toy.warnings()).toEqual([expect.stringContaining(`toy_step_5.json of ${run} is left out`)]);
    expect(await paired(toy, 5)).toMatchObject({ step: 0, run, n_pairs: 8 });
  });

  it("throws for a misspelt word", async () => {
    await expect(from("adapter_of").done).rejects.toThrow('Write "adapter_off".');
    await expect(from("earlier").done).rejects.toThrow('as "./runs/1"');
  });
});

it("reserves an error level for the end if the start is compared too", async () => {
  const toy = toyTraining();
  await train(toy, [watch()], { phase: "coupling" });
  await train(toy, [watch()], { phase: "em", baseline: "run_start" });
  for (const step of [0, 5, 10]) {
    const { paired: compared } = (await toy.store.get({ phase: "em", id: "toy", step }))!;
    expect(compared.baseline!["hit_rate"]!.alpha).toBeCloseTo(0.05 / 3, 10);
  }
});
