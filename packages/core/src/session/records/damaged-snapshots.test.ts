import { readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { PeriodicCallback } from "../../callback/periodic-callback.ts";
import type { SessionOptions, SessionState } from "@periodic-eval/contracts";
import { everyPercent } from "../../schedule/triggers.ts";
import { fileStore, readRun } from "@periodic-eval/store";
import { temporaryFolder } from "../../../../testing/src/temporary-folder.test-data.ts";
import { toyEvaluation, toyTraining } from "../../../../testing/src/toy-training.test-data.ts";
import { openSession } from "../loop/session.ts";

let run: string;
let checkpoint: { readonly state: SessionState; readonly weights: number };
const at = (...parts: string[]) => join(run, "periodic_eval", ...parts);

/** Trains ten steps, measured every two. Returns the measured steps and the warnings. */
async function train(from?: typeof checkpoint, changes: Partial<SessionOptions> = {}) {
  const toy = toyTraining();
  if (from !== undefined) toy.weights = from.weights;
  const measured: number[] = [];
  const callback = new PeriodicCallback(
    toyEvaluation({ onMeasure: () => void measured.push(session.progress.step) }),
    { schedule: [everyPercent(20)] },
  );
  const session = openSession(
    toy.options([callback], { run, ...(from && { resume: from.state }), ...changes }),
  );
  let saved: typeof checkpoint | null = null;
  await session.begin();
  while (session.progress.step < 10) {
    toy.step();
    await session.stepEnd();
    if (session.progress.step === 4) saved = { state: await session.save(), weights: toy.weights };
  }
  await session.end();
  await session.close();
  return { measured, warnings: toy.warnings(), saved };
}

beforeEach(async () => {
  run = temporaryFolder();
  checkpoint = (await train()).saved!;
});

const flip = async (step: number) => {
  const file = at("train", `toy_step_${step}.samples.jsonl`);
  const text = await readFile(file, "utf8");
  const [from, to] = text.includes('"hit":true') ? ["true", "false"] : ["false", "true"];
  await writeFile(file, text.replace(`"hit":${from}`, `"hit":${to}`));
};
const edit = async (step: number, phase = "train") => {
  const file = at(phase, `toy_step_${step}.json`);
  await writeFile(file, (await readFile(file, "utf8")).replace('"n": 8', '"n": 7'));
};

it("records the snapshots that a checkpoint knows", () => {
  expect(checkpoint.state.snapshots).toEqual({ "train/toy": [0, 2, 4] });
});

it("resumes an intact run without a warning", async () => {
  expect(await train(checkpoint)).toMatchObject({ warnings: [], measured: [] });
});

describe.each([
  ["a flipped verdict", flip],
  ["an edited value", edit],
])("%s", (_, attack) => {
  it("of the baseline is named with its effect, and cannot be measured again", async () => {
    await attack(0);
    const { warnings, measured } = await train(checkpoint);
    expect(warnings).toContainEqual(
      'resume: train/toy/0 cannot be measured again, because training is at step 4; baseline of "train" lost: verdicts of "toy" compare with nothing',
    );
    expect(measured).toEqual([]);
  });

  it("beyond the checkpoint is measured again", async () => {
    await attack(6);
    const { warnings, measured } = await train(checkpoint);
    expect(warnings).toContainEqual(expect.stringMatching(/^resume: train\/toy\/6 is measured again/));
    // The session measures it when training crosses its threshold again.
    expect(measured).toHaveLength(1);
    const { problems, phases } = await readRun(run);
    expect(problems).toEqual([]);
    expect(phases[0]!.snapshots.map(({ step }) => step)).toEqual([0, 2, 4, 6, 8, 10]);
  });

  it("at the checkpoint is measured again on its weights", async () => {
    const before = (await readRun(run)).phases[0]!.snapshots[2]!;
    await attack(4);
    const { warnings, measured } = await train(checkpoint);
    expect(warnings).toContainEqual(expect.stringMatching(/^resume: train\/toy\/4 is measured again/));
    expect(measured).toEqual([4]);
    const again = (await readRun(run)).phases[0]!.snapshots[2]!;
    expect(again).toMatchObject({ step: 4, crossed: before.crossed, metrics: before.metrics });
    expect(again.weights).toBe(before.weights);
  });
});

it("measures an unreadable snapshot of the flat layout again at the checkpoint", async () => {
  const folder = temporaryFolder();
  const store = () => fileStore(folder, { layout: "flat", onWarning: () => undefined });
  const { saved } = await train(undefined, { run: store() });
  await writeFile(join(folder, "periodic_eval", "toy_step_4.json"), "{");
  const { warnings, measured } = await train(saved!, { run: store() });
  expect(warnings).toEqual([expect.stringMatching(/^resume: train\/toy\/4 is measured again/)]);
  expect(measured).toEqual([4]);
});

it("keeps a damaged snapshot that is measured again in superseded/", async () => {
  await flip(6);
  await edit(8);
  await train(checkpoint);
  const moved = (await readdir(at("superseded", "train"))).filter((name) => name.endsWith(".json"));
  expect(moved.sort()).toEqual(["toy_step_6.1.json", "toy_step_8.1.damaged.json"]);
});

it("accepts the state of a version that recorded no snapshots", async () => {
  const { snapshots: _, ...state } = checkpoint.state;
  await rm(at(), { recursive: true });
  expect((await train({ ...checkpoint, state })).warnings).toEqual([]);
});
