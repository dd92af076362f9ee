import { readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "vitest";
import { PeriodicCallback } from "../../callback/periodic-callback.ts";
import { everyPercent } from "../../schedule/triggers.ts";
import { toyEvaluation, toyTraining } from "../../../../testing/src/toy-training.test-data.ts";
import { checkSessionOptions } from "../loop/options.ts";
import { withSession } from "../loop/session.ts";
import { fileStore } from "@periodic-eval/store";
import { temporaryFolder } from "../../../../testing/src/temporary-folder.test-data.ts";

const callback = () =>
  new PeriodicCallback(toyEvaluation({ graded: true }), { schedule: [everyPercent(50)] });

it("writes snapshots into the run's folder, and releases it at the end", async () => {
  const run = temporaryFolder();
  for (const phase of ["coupling", "em"]) {
    const toy = toyTraining();
    await withSession(toy.options([callback()], { run, phase }), async (session) => {
      await session.begin();
      for (let step = 0; step < 10; step++) {
        toy.step();
        await session.stepEnd();
      }
    });
    expect(toy.warnings()).toEqual([]);
  }
  const files = (await readdir(join(run, "periodic_eval"), { recursive: true })).filter((name) =>
    name.endsWith(".json"),
  );
  expect(files.sort()).toEqual(
    ["coupling", "em"].flatMap((phase) => [0, 10, 5].map((step) => join(phase, `toy_step_${step}.json`))),
  );
});

it("writes all snapshots into one folder with the flat layout", async () => {
  const run = temporaryFolder();
  const toy = toyTraining();
  await withSession(toy.options([callback()], { run, layout: "flat" }), async (session) => {
    await session.begin();
  });
  expect((await readdir(join(run, "periodic_eval"))).filter((name) => name.endsWith(".json"))).toEqual([
    "toy_step_0.json",
  ]);
  expect(() => checkSessionOptions(toy.options([], { run, layout: "flt" as "flat" }))).toThrow(
    'got "flt", expected "nested" or "flat"',
  );
  const store = fileStore(run);
  expect(() => checkSessionOptions(toy.options([], { run: store, layout: "flat" }))).toThrow(
    "expected no layout beside a store",
  );
});

it("throws before step 1 if the folder cannot be written", async () => {
  const run = join(temporaryFolder(), "file");
  await writeFile(run, "no folder");
  const toy = toyTraining();
  let steps = 0;
  const running = withSession(toy.options([callback()], { run }), async (session) => {
    await session.begin();
    steps++;
  });
  await expect(running).rejects.toThrow("a file is in the place of a folder");
  expect(steps).toBe(0);
});
