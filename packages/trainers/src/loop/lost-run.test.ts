import * as tf from "@tensorflow/tfjs";
import type { TrainerCallback } from "@periodic-eval/core";
import { readdir, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeAll, expect, it } from "vitest";
import { lockText } from "../../../testing/src/lock-file.test-data.ts";
import { tinySFT } from "../sft/tiny-sft.test-data.ts";
import { busyConfig, temporaryFolder } from "../testing/tiny-run.test-data.ts";

beforeAll(async () => {
  await tf.setBackend("cpu");
});

it.each([
  [
    "another process took over",
    (runDir: string) =>
      writeFile(join(runDir, "periodic_eval", ".lock"), lockText({ pid: 7, host: "box", token: "u" })),
    ["run"],
    'process 7 on "box", which took over',
  ],
  ["was renamed", (runDir: string) => rename(runDir, `${runDir}-2`), ["run-2"], "no such folder any more"],
  ["was deleted", (runDir: string) => rm(runDir, { recursive: true }), [], "no such folder any more"],
])("ends a training whose run folder %s, and writes no further checkpoint", async (_, event, left, got) => {
  const above = await temporaryFolder();
  const runDir = join(above, "run");
  const steps: number[] = [];
  const callback: TrainerCallback = {
    id: "event",
    async onStepEnd({ progress: { step } }) {
      steps.push(step);
      if (step === 5) await event(runDir);
    },
  };
  const { sft } = await tinySFT({ runDir, config: { ...busyConfig, saveSteps: 2 }, callbacks: [callback] });
  await expect(sft.train()).rejects.toThrow(got);
  // The checkpoint of step 6 notices it, or the losses before.
  expect(steps.length).toBeLessThan(8);
  expect(await readdir(above)).toEqual(left);
  for (const name of left)
    expect((await readdir(join(above, name, "checkpoints", "train"))).sort()).toEqual(["step_2", "step_4"]);
});
