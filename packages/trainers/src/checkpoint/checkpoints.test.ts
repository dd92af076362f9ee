import { mkdir, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { PeriodicEvalError } from "@periodic-eval/core";
import { describe, expect, it } from "vitest";
import { temporaryFolder } from "../testing/tiny-run.ts";
import { checkpointsOf } from "./checkpoints.ts";

const of = (runDir: string) => checkpointsOf({ runDir, phase: "train", keep: 2, warn: () => undefined });

describe("checkpoints", () => {
  it("of a phase that never ran are none", async () => {
    const runDir = await temporaryFolder();
    expect(await of(runDir).newest()).toBeNull();
    await of(runDir).setAside();
    expect(await readdir(runDir)).toEqual([]);
  });

  it("that are all torn are an error that names each, and are left as they are", async () => {
    const runDir = await temporaryFolder();
    const folder = join(runDir, "checkpoints/train");
    for (const step of [3, 6]) await mkdir(join(folder, `step_${step}`), { recursive: true });
    await writeFile(join(folder, "step_3/trainer_state.json"), "{");
    const error = await of(runDir)
      .newest()
      .catch((thrown: unknown) => thrown);
    expect(PeriodicEvalError.is(error, "store")).toBe(true);
    expect((error as Error).message).toMatch(
      /checkpoints.train: got no whole checkpoint \(step_6: .*; step_3: .*\).*resume: "never"/,
    );
    expect((await readdir(folder)).sort()).toEqual(["step_3", "step_6"]);
  });

  it("that cannot be listed are an error: training anew over them would lose them", async () => {
    const runDir = await temporaryFolder();
    await mkdir(join(runDir, "checkpoints"));
    // A file in the folder's place: like a missing permission, an error that is not "there is none".
    await writeFile(join(runDir, "checkpoints/train"), "");
    for (const look of [() => of(runDir).newest(), () => of(runDir).setAside()]) {
      const error = await look().catch((thrown: unknown) => thrown);
      expect(PeriodicEvalError.is(error, "store")).toBe(true);
      expect((error as Error).message).toMatch(/checkpoints.train: got ENOTDIR/);
    }
  });

  it("are set aside under a name that is free, whatever was removed or is called alike", async () => {
    const runDir = await temporaryFolder();
    const all = join(runDir, "checkpoints/.superseded");
    for (const name of ["train.2", "train.2.x.9"])
      await mkdir(join(all, name, "step_1"), { recursive: true });
    await mkdir(join(runDir, "checkpoints/train/step_3"), { recursive: true });
    await of(runDir).setAside();
    expect((await readdir(all)).sort()).toEqual(["train.2", "train.2.x.9", "train.3"]);
    expect(await readdir(join(all, "train.3"))).toEqual(["step_3"]);
  });
});
