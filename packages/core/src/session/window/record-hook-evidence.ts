import { errorMessage } from "../../internal/error-message.ts";
import { keyText } from "../../snapshots/order.ts";
import type { Evidence } from "../../contracts/snapshot.ts";
import { commit, rowsOf } from "../records/commit.ts";
import { takeHookEvidence } from "./hook-evidence.ts";
import { recordOf } from "../records/new-record.ts";
import { isBroken } from "./run-guarded.ts";
import type { Run } from "../run.ts";

/**
 * What guards saw hooks disturb goes into the next snapshot of the callback. Where none came any more it is added to
 * the callback's record of this step; a disturbance of training makes one where there is none.
 */
export async function recordHookEvidence(run: Run): Promise<void> {
  for (const callback of run.hookEvidence.keys()) {
    const evidence = takeHookEvidence(run, callback);
    const key = { phase: run.phase, id: callback.id, step: run.progress.step };
    const existing = run.records.isSettled(key) ? run.records.get(key) : null;
    if (existing === null) {
      if (evidence.some(isBroken)) await makeRecord(run, key, evidence);
      continue;
    }
    try {
      const rows = await rowsOf(run, existing);
      await commit(run, { ...existing, receipt: [...existing.receipt, ...evidence] }, rows);
    } catch (error) {
      // Written without its rows the record would lose them.
      run.telling.warn(
        `callback "${callback.id}"`,
        `what its hooks disturbed is not in ${keyText(existing)}, whose rows cannot be read: ${errorMessage(error)}`,
      );
    }
  }
}

async function makeRecord(
  run: Run,
  key: { readonly phase: string; readonly id: string; readonly step: number },
  receipt: Evidence[],
): Promise<void> {
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
  const guards = [...new Set(receipt.filter(isBroken).map(({ part }) => `"${part}"`))].join(", ");
  const reason = `a hook of "${key.id}" disturbed training, as seen by ${guards}`;
  const stale = run.records.get(key) === null ? null : "it was left from a training that was cut off";
  await commit(run, recordOf(firing, { status: "failed", reason, receipt }), [], { stale });
}
