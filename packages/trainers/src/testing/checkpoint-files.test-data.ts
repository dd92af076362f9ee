import { cp, mkdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import { verifyCheckpoint, type TrainerState } from "../checkpoint/trainer-state.ts";
import { temporaryFolder } from "./tiny-run.test-data.ts";

export const checkpointFolder = (runDir: string, step: number, phase = "train"): string =>
  join(runDir, "checkpoints", phase, `step_${step}`);

/** Returns the state of a complete checkpoint. Throws if it is damaged or `folder` is null. */
export async function wholeState(folder: string | null): Promise<TrainerState> {
  const state = folder === null ? "no checkpoint" : await verifyCheckpoint(folder);
  if (typeof state === "string") throw new Error(state);
  return state;
}

/** Creates a run that was killed after the last of these checkpoints, `step` or `[phase, step]`, and has no others. */
export async function killedAfter(
  whole: string,
  ...kept: readonly (number | readonly [phase: string, step: number])[]
): Promise<string> {
  const runDir = await temporaryFolder();
  for (const one of kept) {
    const [phase, step] = typeof one === "number" ? ["train", one] : one;
    const folder = checkpointFolder(runDir, step, phase);
    await mkdir(dirname(folder), { recursive: true });
    await cp(checkpointFolder(whole, step, phase), folder, { recursive: true });
  }
  return runDir;
}
