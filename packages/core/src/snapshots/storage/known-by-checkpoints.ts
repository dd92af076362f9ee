import { join } from "#platform";
import * as z from "zod";
import type { SnapshotKey } from "../../contracts/snapshot.ts";
import { keysOfSteps } from "../run-order.ts";
import type { FileReader } from "./file-system.ts";
import { listIfPresent, readIfPresent } from "./read-file.ts";

const stateSchema = z.object({
  session: z.object({ snapshots: z.record(z.string(), z.array(z.int().nonnegative())) }),
});

/**
 * Returns the snapshots that a run's checkpoints know: those in the session state of the newest `checkpoints/<phase>/step_<N>` of
 * each phase, as the trainers write it. Empty without checkpoints, and for those of older versions.
 */
export async function knownByCheckpoints(runDir: string, fs: FileReader): Promise<readonly SnapshotKey[]> {
  const folder = join(runDir, "checkpoints");
  const known: SnapshotKey[] = [];
  for (const { name: phase, isFolder } of await listIfPresent(folder, fs)) {
    if (!isFolder || phase.startsWith(".")) continue;
    const steps = (await listIfPresent(join(folder, phase), fs)).flatMap(
      ({ name }) => /^step_(\d+)$/.exec(name)?.[1] ?? [],
    );
    if (steps.length === 0) continue;
    const newest = `step_${Math.max(...steps.map(Number))}`;
    const text = await readIfPresent(join(folder, phase, newest, "trainer_state.json"), fs);
    try {
      known.push(...keysOfSteps(stateSchema.parse(JSON.parse(text ?? "")).session.snapshots));
    } catch {
      // The trainer reports a damaged checkpoint.
    }
  }
  return known;
}
