import { PeriodicEvalError } from "../../errors.ts";
import { copyJson } from "../../internal/json.ts";
import { withSeededRandom } from "../../guard/randomness.ts";
import { seedOf } from "../../random/streams.ts";
import { advance } from "../../schedule/crossings.ts";
import type { Snapshot } from "../../contracts/snapshot.ts";
import { openBaseline } from "../records/baseline.ts";
import { learnFromRecords } from "../budget/budget.ts";
import { recordsOf } from "../records/known-records.ts";
import { drive } from "./maybe-async.ts";
import { preflight } from "../window/preflight.ts";
import { finishGrading } from "../records/resume.ts";
import { runProgress, type Run } from "../run.ts";

/**
 * Opens the store, reads what an earlier session left, restores the callbacks and checks everything that will be asked.
 *
 * @throws PeriodicEvalError before step 1: `store` where the run cannot be written, `model` or `data` for what an
 * evaluation lacks, `config` for a state that does not fit.
 */
export async function begin(run: Run, maxSteps: number | null): Promise<void> {
  const opened = run.clock();
  const { resume, runStepOffset } = run.options;
  // A state of step 0 says only that nothing was trained: the phase begins.
  const resumed = resume !== undefined && resume.progress.step > 0 ? resume : null;
  await run.store.open?.();
  const found = await run.store.list();
  run.records = recordsOf(found, run.phase, resumed?.progress.step ?? null, resumed?.owed);
  learnFromRecords(run);
  run.runStepOffset = resume?.runStepOffset ?? runStepOffset ?? stepsBefore(found, run.phase);
  const known = maxSteps ?? run.options.maxSteps ?? resumed?.progress.maxSteps ?? null;
  if (resumed === null) {
    run.progress = { ...run.progress, maxSteps: known };
  } else {
    // Nothing was crossed since the checkpoint: hooks see where it stood.
    run.previous = { ...resumed.progress, ended: false };
    run.progress = advance(run.previous, { ...run.previous, maxSteps: known });
    for (const [id, owed] of Object.entries(resumed.owed ?? {})) run.owed.set(id, owed);
    run.windowSeconds = resumed.windowSeconds;
  }
  run.origin = opened - run.windowSeconds - run.progress.elapsedSeconds;
  // An evaluation's `items` and provenance are not training, which must find its numbers where it left them.
  await withSeededRandom(seedOf(run.seed, run.phase, "begin"), async () => {
    restore(run);
    await preflight(run);
    await openBaseline(run);
    await finishGrading(run);
  });
  const standing = run.records
    .all()
    .filter((snapshot) => run.records.isSettled(snapshot) && snapshot.status !== "grading");
  const { run: stored } = run.options;
  const where = typeof stored === "string" ? { run: stored } : {};
  await drive(run.telling.begin({ ...runProgress(run), resumed: resumed !== null, standing, ...where }));
  run.windowSeconds += run.clock() - opened;
}

function restore({ callbacks, options, states }: Run): void {
  for (const callback of callbacks) {
    const state = options.resume?.callbacks[callback.id];
    if (state === undefined) continue;
    states.set(callback.id, copyJson(state));
    try {
      callback.restore?.(state);
    } catch (cause) {
      throw new PeriodicEvalError({
        code: "config",
        where: `session option resume, callback "${callback.id}"`,
        got: "a state that it refuses",
        expected: "the state that it gave",
        fix: "Resume with the callback's version that saved it, or take its entry out of the state.",
        cause,
      });
    }
  }
}

/** Steps of the phases that stand before this one; of all others where this one is new. */
function stepsBefore(found: readonly Snapshot[], phase: string): number {
  const own = found.findIndex((snapshot) => snapshot.phase === phase);
  const before = own === -1 ? found : found.slice(0, own);
  return before.reduce((most, { run_step }) => Math.max(most, run_step), 0);
}
