import { errorMessage } from "../../internal/error-message.ts";
import type { Snapshot } from "../../contracts/snapshot.ts";
import type { Run } from "../run.ts";

/** Keeps the weights of the open window, once; undefined where the session was not told how. */
export function saveWeights(run: Run): Promise<Snapshot["saved"]> | undefined {
  const { saveAtFiring } = run.options;
  if (saveAtFiring === undefined) return undefined;
  run.saved ??= save(run, saveAtFiring);
  return run.saved;
}

async function save(
  run: Run,
  saveAtFiring: NonNullable<Run["options"]["saveAtFiring"]>,
): Promise<NonNullable<Snapshot["saved"]>> {
  try {
    const path: unknown = await saveAtFiring({ phase: run.phase, progress: run.progress });
    if (typeof path !== "string")
      throw new TypeError(`got ${typeof path}, expected the path that was written`);
    return { path, error: null };
  } catch (error) {
    const { step } = run.progress;
    run.telling.warn("saveAtFiring", `the weights of step ${step} are not saved: ${errorMessage(error)}`);
    return { path: null, error: errorMessage(error) };
  }
}
