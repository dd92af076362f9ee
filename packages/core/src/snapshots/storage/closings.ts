import * as z from "zod";
import type { PhaseClosing } from "../../contracts/snapshot.ts";
import { writeFileAtomic } from "./atomic-file.ts";
import type { FileReader, FileSystem } from "./file-system.ts";
import { readIfPresent } from "./read-file.ts";

const schema = z.array(
  z.object({
    phase: z.string(),
    step: z.int().nonnegative(),
    maxSteps: z.int().positive().nullable(),
    finished: z.boolean(),
  }),
);

/** Reads where the phases of a run closed, oldest first. A missing or damaged file says nothing: snapshots then decide. */
export async function readClosings(path: string, fs: FileReader): Promise<readonly PhaseClosing[]> {
  const text = await readIfPresent(path, fs);
  if (text === null) return [];
  try {
    return schema.parse(JSON.parse(text));
  } catch {
    return [];
  }
}

/** Writes where a phase closed, as the newest closing of the run. */
export async function writeClosing(path: string, closing: PhaseClosing, fs: FileSystem): Promise<void> {
  const { phase, step, maxSteps, finished } = closing;
  const others = (await readClosings(path, fs)).filter((one) => one.phase !== phase);
  await writeFileAtomic(path, `${JSON.stringify([...others, { phase, step, maxSteps, finished }])}\n`, fs);
}
