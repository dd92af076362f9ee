import { mkdtempSync, rmSync } from "node:fs";
import { mkdir, readdir, writeFile } from "node:fs/promises";
import type * as files from "node:fs/promises";
import { join } from "node:path";
import { openSafetensors, writeSafetensors } from "@periodic-eval/safetensors";
import { expect, it, onTestFinished, vi } from "vitest";
import { cuts, powerCutDisk, type Recorder } from "../../../testing/src/power-cut.test-data.ts";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";
import { checkpointsOf } from "./checkpoints.ts";
import { stateOf } from "./trainer-state.test-data.ts";

const recorder = vi.hoisted((): Recorder => ({ disk: null, afterChange: async () => {} }));
vi.mock("node:fs/promises", async (importOriginal) => {
  const { recordedFiles } = await import("../../../testing/src/power-cut.test-data.ts");
  return recordedFiles(await importOriginal<typeof files>(), recorder);
});

const isFull = process.env["PERIODIC_EVAL_FULL"] !== undefined;

const tensorFiles = ["model.safetensors", "optimizer.safetensors"];

/** Opens the checkpoints of a run. Adds warnings to a list. */
const open = (runDir: string, warnings: string[] = []) =>
  checkpointsOf({ runDir, phase: "train", keep: 1, warn: (_, message) => void warnings.push(message) });

/** Saves weights, the optimizer's state, a file in a folder, and the trainer's state, all marked with a number. */
const save = (runDir: string, step: number, mark: number, best: number | null) =>
  open(runDir).save(stateOf(step, mark, best), async (folder) => {
    for (const file of tensorFiles)
      await writeSafetensors(join(folder, file), [
        { name: "w", shape: [2], values: () => Float32Array.of(mark, mark) },
      ]);
    await mkdir(join(folder, "tokenizer"));
    await writeFile(join(folder, "tokenizer/vocabulary"), `of save ${mark}`);
  });

/** Resumes what a cut left: the checkpoint is one of `marks`, with all its files, and saving continues. */
async function expectResumable(
  runDir: string,
  marks: readonly (number | null)[],
  place: string,
): Promise<void> {
  const warnings: string[] = [];
  const found = await open(runDir, warnings).newest();
  expect(warnings, place).toEqual([]);
  const mark = found?.state.loss ?? null;
  expect(marks, place).toContain(mark);
  if (found !== null)
    for (const file of tensorFiles) {
      const tensors = await openSafetensors(join(found.path, file));
      expect(await tensors.read("w"), place).toEqual(Float32Array.of(mark!, mark!));
      await tensors.close();
    }
  await open(runDir).tidy(found?.state ?? null);
  await save(runDir, 8, 99, null);
  expect(await readdir(join(runDir, "checkpoints/train")), place).toEqual(["step_8"]);
  expect((await open(runDir).newest())!.state.loss, place).toBe(99);
}

it.each([
  ["the same step again", [1, 2, 2], null],
  ["a new best, which is kept", [1, 2, 3], 1],
] as const)(
  "leaves the last checkpoint or the new one complete after a power cut at any point: %s",
  { timeout: 600_000 },
  async (_, steps, best) => {
    const folder = temporaryFolder();
    const top = mkdtempSync(join(folder, "disk-"));
    const runDir = join(top, "runs/one");
    const disk = powerCutDisk(top);
    const ways = cuts(isFull ? 6 : 1);
    let [point, done] = [0, 0];
    const cutAll = async (marks: readonly (number | null)[], some: typeof ways) => {
      recorder.disk = null;
      for (const way of some) {
        const left = mkdtempSync(join(folder, "left-"));
        disk.cut(way, left);
        await expectResumable(join(left, "runs/one"), marks, `save ${done}, ${way.name}, point ${point}`);
        rmSync(left, { recursive: true });
      }
      recorder.disk = disk;
    };
    onTestFinished(() => void Object.assign(recorder, { disk: null }));
    recorder.disk = disk;
    for (const step of steps) {
      recorder.afterChange = async () => {
        point += 1;
        if (!isFull && point % 7 !== 0) return;
        await cutAll([done === 0 ? null : done, done + 1], isFull ? ways : [ways[point % ways.length]!]);
      };
      await save(runDir, step, done + 1, best);
      done += 1;
      // The save has returned, so it survives every cut.
      await cutAll([done], isFull ? ways : ways.slice(0, 1));
    }
    recorder.disk = null;
    expect(point).toBeGreaterThan(60);
  },
);
