import { readdir, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeEach, expect, it } from "vitest";
import { PeriodicCallback } from "../../callback/periodic-callback.ts";
import { displayLogger } from "../../console/console-logger.ts";
import type { Snapshot, Session } from "@periodic-eval/contracts";
import { everySteps } from "../../schedule/triggers.ts";
import { fileStore } from "@periodic-eval/store";
import { lockText } from "../../../../testing/src/lock-file.test-data.ts";
import { temporaryFolder } from "../../../../testing/src/temporary-folder.test-data.ts";
import { toyEvaluation, toyTraining } from "../../../../testing/src/toy-training.test-data.ts";
import { withSession } from "./session.ts";

let above: string;
let run: string;
beforeEach(() => {
  above = temporaryFolder();
  run = join(above, "run");
});

/** Trains 6 steps and measures at each, with `event` after step 3. Returns what was measured, said and thrown. */
async function trainedWith(event: () => Promise<void>) {
  const toy = toyTraining();
  const measured: number[] = [];
  const [lines, warnings] = [[] as string[], [] as string[]];
  const display = {
    keep: (line: string) => void lines.push(line),
    warn: (where: string, message: string) => void warnings.push(`${where}: ${message}`),
  };
  const callback = new PeriodicCallback(toyEvaluation(), { schedule: [everySteps(1)] });
  const counting = { name: "counting", snapshot: ({ step }: Snapshot) => void measured.push(step) };
  let steps = 0;
  const train = async (session: Session) => {
    await session.begin();
    for (; steps < 6; steps++) {
      toy.step();
      expect((await session.stepEnd({ metrics: { loss: steps } })).stop).toBeNull();
      if (steps === 2) await event();
    }
    expect(session.lost).not.toBeNull();
  };
  const options = {
    ...toy.options([callback]),
    run,
    maxSteps: 6,
    loggers: [counting, displayLogger(display)],
  };
  const thrown = await withSession(options, train).catch((error: unknown) => String(error));
  return { measured, warnings, thrown, closing: lines.at(-1)!, steps };
}

it.each([
  [
    "another process took over",
    () => writeFile(join(run, "periodic_eval", ".lock"), lockText({ pid: 7, host: "box", token: "u" })),
    'process 7 on "box", which took over',
  ],
  [
    "its folder was renamed",
    () => rename(run, join(above, "renamed")),
    "no such folder any more: it was renamed or",
  ],
])("stops measuring, trains on and throws at the end once %s", async (_, event, got) => {
  const { measured, warnings, thrown, closing, steps } = await trainedWith(event);
  expect(steps).toBe(6);
  // The write of the losses of step 4, before its measurement, notices it.
  expect(measured).toEqual([0, 1, 2, 3]);
  expect(warnings).toEqual([
    expect.stringMatching(/^store: .*This process writes nothing more\..* Measuring stops\.$/),
  ]);
  expect(warnings[0]).toContain(got);
  expect(thrown).toContain(got);
  expect(closing).toContain(`writing stopped (${got}`);
  expect(closing).not.toContain("See the page");
  const [left] = await readdir(above);
  expect(await readdir(above)).toHaveLength(1);
  expect((await fileStore(join(above, left!)).list()).map(({ step }) => step)).toEqual([0, 1, 2, 3]);
});
