import { appendFile, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "vitest";
import { PeriodicCallback } from "../../callback/periodic-callback.ts";
import { atEnd, atStart } from "../../schedule/triggers.ts";
import { fileStore, readRun } from "@periodic-eval/store";
import { faultyFiles } from "../../../../testing/src/faulty-files.test-data.ts";
import { temporaryFolder } from "../../../../testing/src/temporary-folder.test-data.ts";
import { toyEvaluation, toyTraining } from "../../../../testing/src/toy-training.test-data.ts";
import { openSession } from "../loop/session.ts";
import { thinnedOut } from "./training-curves.ts";

const callback = () => new PeriodicCallback(toyEvaluation(), { schedule: [atStart(), atEnd()] });
const curve = async (runDir: string) => (await readRun(runDir)).phases[0]?.training;
const fileOf = (runDir: string) => join(runDir, "periodic_eval", "training", "train.jsonl");

it("keeps what stepEnd and log report, by step, and null for a value that is not finite", async () => {
  const run = temporaryFolder();
  const toy = toyTraining();
  const session = openSession(toy.options([callback()], { run, runStepOffset: 100 }));
  await session.begin();
  await session.stepEnd({ metrics: { loss: 3, tokens_per_second: 10 } });
  await session.stepEnd();
  await session.stepEnd({ metrics: { loss: NaN } });
  await session.log({ eval_loss: 2.5 });
  await session.close();
  expect(await curve(run)).toEqual([
    { step: 1, runStep: 101, metrics: { loss: 3, tokens_per_second: 10 } },
    { step: 3, runStep: 103, metrics: { loss: null, eval_loss: 2.5 } },
  ]);
  expect(toy.warnings()).toEqual([]);
});

it("removes the points after the resumed step, and an unfinished last line", async () => {
  const run = temporaryFolder();
  const toy = toyTraining();
  const first = openSession(toy.options([callback()], { run }));
  await first.begin();
  for (let step = 1; step <= 4; step++) await first.stepEnd({ metrics: { loss: step } });
  const resume = { ...(await first.save()) };
  for (let step = 5; step <= 8; step++) await first.stepEnd({ metrics: { loss: step } });
  await first.close();
  await appendFile(fileOf(run), '{"step":9,"run_st');
  expect((await curve(run))!.map(({ step }) => step)).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
  const second = openSession(toy.options([callback()], { run, resume }));
  await second.begin();
  expect((await curve(run))!.map(({ step }) => step)).toEqual([1, 2, 3, 4]);
  await second.stepEnd({ metrics: { loss: 50 } });
  await second.close();
  expect((await curve(run))!.map(({ metrics }) => metrics["loss"])).toEqual([1, 2, 3, 4, 50]);
});

it("starts over with a phase that starts over, also where only an unfinished line is left", async () => {
  const run = temporaryFolder();
  const toy = toyTraining();
  const train = async (loss: number) => {
    const session = openSession(toy.options([callback()], { run }));
    await session.begin();
    await session.stepEnd({ metrics: { loss } });
    await session.close();
  };
  await train(1);
  await train(2);
  expect((await curve(run))!.map(({ metrics }) => metrics["loss"])).toEqual([2]);
  await writeFile(fileOf(run), '{"step":1');
  await train(3);
  expect((await curve(run))!.map(({ metrics }) => metrics["loss"])).toEqual([3]);
});

it("takes what training logged in another process at its own steps", async () => {
  const run = temporaryFolder();
  const session = openSession(toyTraining().options([callback()], { run }));
  await session.begin();
  const logged = [
    { step: 2, metrics: { loss: 3 } },
    { step: 4, metrics: { loss: 2 } },
  ];
  await session.stepEnd({ step: 5, metrics: { loss: 2 }, logged });
  await session.close();
  expect((await curve(run))!.map(({ step }) => step)).toEqual([2, 4]);
});

it("never stops training: a full disk is warned of once, and a later write has all points", async () => {
  const run = temporaryFolder();
  const toy = toyTraining();
  let isFull = true;
  const fs = faultyFiles(({ name, path }) =>
    isFull && name === "write" && path.includes("train.jsonl") ? { errno: "ENOSPC" } : "none",
  );
  const session = openSession(toy.options([callback()], { run: fileStore(run, { fs }) }));
  await session.begin();
  await session.stepEnd({ metrics: { loss: 1 } });
  await session.save();
  await session.stepEnd({ metrics: { loss: 2 } });
  await session.save();
  isFull = false;
  await session.stepEnd({ metrics: { loss: 3 } });
  await session.close();
  expect(toy.warnings()).toHaveLength(1);
  expect((await curve(run))!.map(({ metrics }) => metrics["loss"])).toEqual([1, 2, 3]);
});

it("ignores damaged lines, which are no problem of the run", async () => {
  const run = temporaryFolder();
  const session = openSession(toyTraining().options([callback()], { run }));
  await session.begin();
  for (let step = 1; step <= 3; step++) await session.stepEnd({ metrics: { loss: step } });
  await session.close();
  const lines = (await readFile(fileOf(run), "utf8")).split("\n");
  lines[1] = '{"step":-1,"run_step":2,"metrics":{"loss":"2"}}';
  await writeFile(fileOf(run), lines.join("\n"));
  const { phases, problems } = await readRun(run);
  expect(problems).toEqual([]);
  expect(phases[0]!.training!.map(({ step }) => step)).toEqual([1, 3]);
});

it("has a bounded number of points, and all values of a rare metric", async () => {
  const run = temporaryFolder();
  const maxSteps = 20_000;
  const session = openSession(toyTraining().options([callback()], { run, maxSteps }));
  await session.begin();
  for (let step = 1; step <= maxSteps; step++)
    await session.stepEnd({ metrics: { loss: step, ...(step % 1000 === 999 && { eval_loss: step }) } });
  await session.close();
  const points = (await curve(run))!;
  expect(points.length).toBeLessThan(6000);
  expect(points.length).toBeGreaterThan(1000);
  expect(points.filter(({ metrics }) => "eval_loss" in metrics)).toHaveLength(20);
  expect(points.at(-1)!.step).toBeGreaterThan(19_900);
});

it("thins out by step: of every w steps the first value stays", () => {
  const points = Array.from({ length: 10 }, (_, step) => ({ step, runStep: step, metrics: { loss: step } }));
  // 10 values, at most 4: w = 4 leaves steps 0, 4 and 8.
  expect(thinnedOut(points, 4).map(({ step }) => step)).toEqual([0, 4, 8]);
});
