import { commit } from "./commit.ts";
import { recordOf } from "./record.ts";
import type { Run } from "./run.ts";

/**
 * What guards saw hooks disturb goes into the next snapshot of the callback. Where none came any more it is added to
 * the callback's record of this step, or makes one.
 */
export async function recordBrokenHooks(run: Run): Promise<void> {
  for (const [callback, broken] of run.brokenHooks) {
    const key = { phase: run.phase, id: callback.id, step: run.progress.step };
    const existing = run.records.isSettled(key) ? run.records.get(key) : null;
    if (existing !== null) {
      const rows = await run.store.rows(existing).catch(() => []);
      await commit(run, { ...existing, receipt: [...existing.receipt, ...broken] }, rows);
      continue;
    }
    const firing = {
      ...key,
      at: run.progress,
      runStepOffset: run.runStepOffset,
      crossed: [],
      on: "model",
      evaluation: { name: "hooks", version: "1" },
      seed: run.seed,
      createdAt: run.now(),
    } as const;
    const guards = [...new Set(broken.map(({ part }) => `"${part}"`))].join(", ");
    const reason = `a hook of "${callback.id}" disturbed training, as seen by ${guards}`;
    const stale = run.records.get(key) === null ? null : "it was left from a training that was cut off";
    await commit(run, recordOf(firing, { status: "failed", reason, receipt: broken }), [], { stale });
  }
  run.brokenHooks.clear();
}
