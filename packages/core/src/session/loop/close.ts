import { PeriodicEvalError } from "../../errors.ts";
import { errorMessage } from "../../internal/error-message.ts";
import { keyText } from "../../snapshots/order.ts";
import { drainGrading } from "../records/background-grading.ts";
import { writeAll } from "../records/commit.ts";
import { tellFinished } from "./hooks.ts";
import { drive } from "./maybe-async.ts";
import { recordHookEvidence } from "../window/record-hook-evidence.ts";
import type { Run } from "../run.ts";

/**
 * Waits for grading, records what is left to record, closes callbacks, loggers and the store. Each part is done
 * whatever became of those before.
 *
 * @throws PeriodicEvalError `store` where snapshots could not be written to the last, and what `onFailure: "throw"`
 * wants thrown.
 */
export async function close(run: Run, hadBegun: boolean): Promise<void> {
  run.isMeasuring = false;
  const part = async (what: string, work: () => Promise<unknown>) => {
    try {
      await work();
    } catch (error) {
      run.telling.warn("close", `${what}: ${errorMessage(error)}`);
    }
  };
  if (hadBegun) {
    await part("grading", () => drain(run));
    await part("telling of snapshots", async () => drive(tellFinished(run)));
    await part("what hooks disturbed", () => recordHookEvidence(run));
    await part("snapshots not written", () => writeAll(run));
    await part("telling of snapshots", async () => drive(tellFinished(run)));
  }
  for (const callback of run.callbacks)
    await part(`callback "${callback.id}"`, async () => {
      run.hook = "close";
      await callback.close?.();
    });
  run.hook = null;
  await drive(run.telling.close());
  await part("store", async () => run.store.close?.());
  if (run.unwritten.length > 0) {
    const firstStep = Math.min(...run.unwritten.map(({ snapshot }) => snapshot.step));
    const { error: cause } = run.unwritten[0]!.refusal ?? { error: null };
    const mend = PeriodicEvalError.is(cause) ? cause.fix : "Free space or mend the folder's permissions.";
    throw new PeriodicEvalError({
      code: "store",
      where: "session.close",
      got: `${run.unwritten.length} snapshots that could not be written (${run.unwritten.map(({ snapshot }) => keyText(snapshot)).join(", ")}): ${errorMessage(cause)}`,
      expected: "a store that can be written",
      fix: `${mend} Then ${firstStep === 0 ? "train the phase anew" : `resume from a checkpoint before step ${firstStep}`}: what was measured after a checkpoint is measured again.`,
      cause,
    });
  }
  if (run.toThrow !== null) throw run.toThrow;
}

async function drain(run: Run): Promise<void> {
  // After an abort nothing is waited for: what is not graded stays for the resumed run.
  const isDone = await drainGrading(
    run,
    run.options.signal?.aborted === true ? 0 : (run.options.budget?.drainSeconds ?? 600),
  );
  run.endGrading.abort(new Error("the session is closed"));
  if (isDone) return;
  const waiting = run.records.all().filter(({ status }) => status === "grading");
  run.telling.warn(
    "close",
    `time is up for grading ${waiting.map(keyText).join(", ")}: finished when the run is resumed`,
  );
}
