import { mkdir, readdir, rename, rm, symlink, utimes, writeFile } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import { PeriodicEvalError } from "@periodic-eval/core";
import { describe, expect, it } from "vitest";
import { temporaryFolder } from "../testing/tiny-run.test-data.ts";
import { checkpointsOf } from "./checkpoints.ts";
import type { TrainerState } from "./trainer-state.ts";
import { stateOf } from "./trainer-state.test-data.ts";

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

  it("accepts a checkpoint whose files were replaced by links to the same content", async () => {
    const runDir = await temporaryFolder();
    const folder = await of(runDir).save(stateOf(3, 1, null), (draft) =>
      writeFile(join(draft, "weights"), "of step 3"),
    );
    await rename(join(folder, "weights"), join(runDir, "kept-elsewhere"));
    await symlink(join(runDir, "kept-elsewhere"), join(folder, "weights"));
    expect((await of(runDir).newest())!.state.step).toBe(3);
    await writeFile(join(runDir, "kept-elsewhere"), "changed");
    await expect(of(runDir).newest()).rejects.toThrow("step_3: weights was changed");
  });

  it("resumes from the checkpoint before one in which a file is missing", async () => {
    const runDir = await temporaryFolder();
    const warnings: string[] = [];
    const checkpoints = checkpointsOf({
      runDir,
      phase: "train",
      keep: 2,
      warn: (_where, message) => void warnings.push(message),
    });
    const write = async (draft: string) => {
      await mkdir(join(draft, "weights"));
      await writeFile(join(draft, "weights/part"), "");
    };
    await checkpoints.save(stateOf(3, 1, null), write);
    await rm(join(await checkpoints.save(stateOf(6, 2, null), write), "weights/part"));
    expect((await checkpoints.newest())!.state.step).toBe(3);
    expect(warnings).toEqual([
      expect.stringContaining(`skipped a damaged checkpoint: weights/part is missing;`),
    ]);
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

describe("tidy", () => {
  /** Writes an empty file and its folders. */
  const touch = async (path: string) => {
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, "");
  };

  /** Returns the paths of all files in a folder, with `/` on every system. */
  const filesIn = async (folder: string) => {
    const entries = await readdir(folder, { recursive: true, withFileTypes: true });
    const paths = entries
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name));
    return paths.map((path) => relative(folder, path).replaceAll("\\", "/")).toSorted();
  };

  it("removes the leftovers of interrupted processes, and checkpoints that a kill kept", async () => {
    const runDir = await temporaryFolder();
    const path = (name: string) => join(runDir, name);
    const others = ["train.yaml", ".hidden", ".mine.tmp", "checkpoints/other/step_1/model.safetensors"];
    await touch(path("checkpoints/.superseded/train.1/.step_9.removed/weights"));
    // 2 ** 22 is the largest process number of Linux.
    const dead = ["", "checkpoints/", "saved/train/step_1/", "verdicts/ab/"].map(
      (folder) => `${folder}.file.json.4194305.3.tmp`,
    );
    // The parent process runs too; this process still writes.
    const alive = [`.file.${process.ppid}.1.tmp`, `.file.${process.pid}.9.tmp`];
    for (const name of [...others, ...dead, ...alive]) await touch(path(name));
    await touch(path(`verdicts/.old.${process.pid}.1.tmp`));
    await utimes(path(`verdicts/.old.${process.pid}.1.tmp`), 1, 1);
    const folders = [
      "step_1",
      "step_2",
      "step_3",
      "step_4",
      ".step_1.removed",
      ".step_5.draft-0a",
      ".step_4.old",
    ];
    for (const name of folders) await touch(path(`checkpoints/train/${name}/weights`));
    for (const name of ["step_2", ".step_3.draft-0a"]) await touch(path(`saved/train/${name}/weights`));
    await of(runDir).tidy({ step: 4, best: { step: 1 } } as TrainerState);
    expect(await filesIn(runDir)).toEqual(
      [
        ...others,
        ...alive,
        ...["step_1", "step_3", "step_4"].map((name) => `checkpoints/train/${name}/weights`),
        "saved/train/step_2/weights",
      ].toSorted(),
    );
  });

  it("keeps folders of the user, whatever their names", async () => {
    const runDir = await temporaryFolder();
    const mine = [
      "checkpoints/train/.notes.old/a",
      "checkpoints/train/.plots.removed/a",
      "code/.step_1.old/a",
      "data/.cache.4194305.1.tmp",
    ];
    for (const name of [...mine, "checkpoints/train/.step_1.removed/a"]) await touch(join(runDir, name));
    await of(runDir).tidy(null);
    await of(runDir).newest();
    expect(await filesIn(runDir)).toEqual(mine);
  });

  it("keeps every checkpoint of a phase that starts over", async () => {
    const runDir = await temporaryFolder();
    for (const name of ["step_1", "step_2", "step_3"])
      await touch(join(runDir, "checkpoints/train", name, "x"));
    await of(runDir).tidy(null);
    expect(await readdir(join(runDir, "checkpoints/train"))).toHaveLength(3);
  });
});
