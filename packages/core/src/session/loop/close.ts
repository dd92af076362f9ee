import { PeriodicEvalError } from "@periodic-eval/contracts";
import { errorMessage } from "@periodic-eval/contracts/options";
import { withMinuteLines } from "../../model/minute-lines.ts";
import { inRunOrder, keyText } from "@periodic-eval/store";
import type { SnapshotWriter } from "../records/snapshot-writer.ts";
import type { SessionParts } from "./parts.ts";

/**
 * Waits for grading, writes what is left to write, and closes callbacks, loggers and the store. A part that fails is logged,
 * and the others still run.
 *
 * @throws PeriodicEvalError `store` if snapshots could not be written or the run was lost; the error that `onFailure: "throw"` kept.
 */
export async function closeSession(
  parts: SessionParts,
  { hasBegun, isFinished }: { readonly hasBegun: boolean; readonly isFinished: boolean },
): Promise<void> {
  const { callbacks, log, control, requests, hooks, records, progress, window } = parts;
  requests.close();
  const part = async (what: string, work: () => Promise<unknown>) => {
    try {
      await work();
    } catch (error) {
      log.warn("close", `${what}: ${errorMessage(error)}`);
    }
  };
  if (hasBegun) {
    await part("grading", () => drainGrading(parts));
    parts.reportPauses();
    await part("announcing snapshots", () => hooks.announceSnapshots());
    const ofPhase = inRunOrder(records.known.settled().filter(({ phase }) => phase === progress.phase));
    await part("changes by hooks", () => window.disturbances.recordRest(ofPhase.at(-1), records.writer));
    await part("unwritten snapshots", () => records.writer.writeAll());
    await part("announcing snapshots", () => hooks.announceSnapshots());
    await records.training.write();
  }
  if (hasBegun) await recordClosing(parts, isFinished && control.brokenReceipt === null);
  for (const callback of callbacks)
    await part(`callback "${callback.id}"`, () => hooks.closeCallback(callback));
  await log.close();
  await part("store", async () => records.store.close?.());
  parts.rejections.end();
  control.throwError();
  const lost = records.lost();
  if (lost !== null) throw lost;
  checkWritten(records.writer);
}

/** Records how the phase ended. Not worth a warning if it fails: readers then go by the snapshots. */
async function recordClosing({ log, records, progress }: SessionParts, finished: boolean): Promise<void> {
  const at = progress.inRun();
  const { phase, step, maxSteps } = at;
  await records.store.recordClosing?.({ phase, step, maxSteps, finished }).catch(() => undefined);
  const lost = records.lost();
  await log.end({
    ...at,
    finished,
    ...(lost !== null && { lost: PeriodicEvalError.is(lost) ? lost.got : lost.message }),
  });
}

async function drainGrading({ options, log, records, endGrading }: SessionParts): Promise<void> {
  // After an abort nothing is waited for: a resumed run finishes the grading.
  // Nor is anything waited for that could not be written.
  const isEnding = options.signal?.aborted === true || records.lost() !== null;
  const seconds = isEnding ? 0 : (options.budget?.drainSeconds ?? 600);
  const keys = () =>
    records.known
      .all()
      .filter(({ status }) => status === "grading")
      .map(keyText)
      .join(", ");
  const isDone = await withMinuteLines(
    (line) => log.warn("close", line),
    (waited) =>
      `the session has waited ${waited} s for the grading of ${keys()}; it ends after ${seconds} s (budget.drainSeconds), and a resumed run then grades the rest`,
    () => records.grading.drain(seconds),
  );
  endGrading();
  if (isDone || records.lost() !== null) return;
  log.warn("close", `grading of ${keys()} ran out of time; a resumed run finishes it`);
}

function checkWritten(writer: SnapshotWriter): void {
  const refused = writer.refused();
  if (refused.length === 0) return;
  const firstStep = Math.min(...refused.map(({ snapshot }) => snapshot.step));
  const cause = refused[0]!.error;
  const repair = PeriodicEvalError.is(cause) ? cause.fix : "Free space or fix the folder's permissions.";
  const repeat =
    firstStep === 0 ? "train the phase again" : `resume from a checkpoint before step ${firstStep}`;
  throw new PeriodicEvalError({
    code: "store",
    where: "session.close",
    got: `${refused.length} snapshots that could not be written (${refused.map(({ snapshot }) => keyText(snapshot)).join(", ")}): ${errorMessage(cause)}`,
    expected: "a store that can be written",
    fix: `${repair} Then ${repeat}: measurements after a checkpoint are repeated.`,
    cause,
  });
}
