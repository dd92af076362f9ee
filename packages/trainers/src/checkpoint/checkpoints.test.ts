import { mkdir, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { PeriodicEvalError } from "@periodic-eval/core";
import { describe, expect, it } from "vitest";
import { temporaryFolder } from "../testing/tiny-run.ts";
import { checkpointsOf } from "./checkpoints.ts";

const of = (runDir: string) => checkpointsOf({ runDir, phase: "train", keep: 2, warn: () => undefined });

describe("checkpoints", () => {
  it("returns null for a phase that never ran", async () => {
    const runDir = await temporaryFolder();
    expect(await of(runDir).newest()).toBeNull();
    await of(runDir).setAside();
    expect(await readdir(runDir)).toEqual([]);
  });

  it("throws an error that names every damaged checkpoint, and leaves the files unchanged", async () => {
    const runDir = await temporaryFolder();
    const folder = join(runDir, "checkpoints/train");
    for (const step of [3, 6]) await mkdir(join(folder, `step_${step}`), { recursive: true });
    await writeFile(join(folder, "step_3/trainer_state.json"), "{");
    const error = await of(runDir)
      .newest()
      .catch((thrown: unknown) => thrown);
    expect(PeriodicEvalError.is(error, "store")).toBe(true);
    expect((error as Error).message).toMatch(
      /checkpoints.train: got no complete checkpoint \(step_6: .*; step_3: .*\).*resume: "never"/,
    );
    expect((await readdir(folder)).sort()).toEqual(["step_3", "step_6"]);
  });

  it("throws if the folder cannot be listed: starting over would overwrite checkpoints", async () => {
    const runDir = await temporaryFolder();
    await mkdir(join(runDir, "checkpoints"));
    // A file in place of the folder fails like a missing permission, with an error other than ENOENT.
    await writeFile(join(runDir, "checkpoints/train"), "");
    for (const list of [() => of(runDir).newest(), () => of(runDir).setAside()]) {
      const error = await list().catch((thrown: unknown) => thrown);
      expect(PeriodicEvalError.is(error, "store")).toBe(true);
      expect((error as Error).message).toMatch(/checkpoints.train: got ENOTDIR/);
    }
  });

  it("moves checkpoints to a free name, despite removed folders and phases with similar names", async () => {
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
