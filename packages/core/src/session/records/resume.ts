import type { TrainerCallback } from "../../contracts/callback.ts";
import type { AnyEvaluation } from "../../contracts/evaluation.ts";
import type { Json } from "../../contracts/json.ts";
import type { Snapshot } from "../../contracts/snapshot.ts";
import { canonicalJson } from "../../random/hash.ts";
import { keyText } from "../../snapshots/run-order.ts";
import { spentBy } from "./comparisons.ts";
import { percentOf, type Measurement } from "./new-snapshot.ts";
import type { SessionRecords } from "./records.ts";

/** Returns null if a snapshot of the same key holds what measuring would give, else why it does not. */
export function whyNotAdopted(
  found: Snapshot,
  { evaluation, on }: Pick<Measurement, "evaluation" | "on">,
  provenance: Pick<Snapshot["provenance"], "hash">,
  weights: string | null,
): string | null {
  if (found.status !== "complete" && found.status !== "grading") return `it was ${found.status}`;
  if (found.evaluation !== evaluation.name) return `it was of the evaluation ${found.evaluation}`;
  if (found.evaluation_version !== evaluation.version) return `it was of version ${found.evaluation_version}`;
  if (found.on !== on) return `it was measured on the ${found.on}`;
  if (found.provenance.hash !== provenance.hash) return "its items, options, model or seed were different";
  if (found.weights === null || weights === null) return "its weights cannot be compared";
  return found.weights === weights ? null : "its weights were different";
}

/** Adopts a snapshot of a training that was interrupted, and continues its grading if that was interrupted too. */
export async function adoptSnapshot(
  records: SessionRecords,
  found: Snapshot,
  { at, crossed, runStep }: Measurement,
  callback: TrainerCallback,
): Promise<void> {
  const place: Snapshot = {
    ...found,
    crossed: [...crossed],
    max_steps: at.maxSteps,
    pct: percentOf(at),
    epoch: at.epoch,
    run_step: runStep,
  };
  // If the phase's length changed, the numbers stand but the thresholds differ.
  const isSame = canonicalJson(place as Json) === canonicalJson(found as Json);
  const rows = isSame
    ? null
    : await records.writer.rowsOrWarn(found, "so it keeps the thresholds of the earlier training");
  if (rows === null) {
    records.known.settle(found);
    records.writer.announce(found);
  } else {
    await records.writer.commit(place, rows);
  }
  if (found.status === "grading") await continueGrading(records, rows === null ? found : place, [callback]);
}

/** Continues the grading that was under way when a session ended: in this phase up to the resumed step, and in all others. */
export async function finishGrading(
  records: SessionRecords,
  callbacks: readonly TrainerCallback[],
): Promise<void> {
  const { known, baselines } = records;
  // A comparison waits for the grading of its baseline only if that has begun.
  const rank = ({ id }: Snapshot) => (baselines.isBaselineId(id) ? 0 : 1);
  for (const snapshot of known.settled().sort((a, b) => rank(a) - rank(b))) {
    if (snapshot.status === "grading") await continueGrading(records, snapshot, callbacks);
  }
}

async function continueGrading(
  { comparisons, grading, writer, reporter }: SessionRecords,
  snapshot: Snapshot,
  callbacks: readonly TrainerCallback[],
): Promise<void> {
  const callback = callbacks.find(({ asks = [] }) => asks.some((one) => isEvaluationOf(snapshot, one)));
  const evaluation = callback?.asks?.find((one) => isEvaluationOf(snapshot, one));
  if (callback === undefined || evaluation === undefined) {
    reporter.warn(
      "resume",
      `${keyText(snapshot)} is not graded yet, and no callback here asks for its evaluation`,
    );
    return;
  }
  const plan = comparisons.plan(snapshot, null);
  // The error level was reserved when the rows were measured.
  const alpha = spentBy(snapshot) ?? plan.alpha;
  const base: Snapshot = { ...snapshot, status: snapshot.reason === null ? "complete" : "partial" };
  const rows = await writer.rowsOrWarn(snapshot, "so it stays ungraded");
  if (rows !== null) grading.start({ base, rows, evaluation, callback, plan: { ...plan, alpha } });
}

/** Whether a snapshot is of this evaluation, with the same options. Must be called after `items`, as provenance requires. */
function isEvaluationOf(snapshot: Snapshot, evaluation: AnyEvaluation): boolean {
  return (
    evaluation.grade !== undefined &&
    snapshot.evaluation === evaluation.name &&
    snapshot.evaluation_version === evaluation.version &&
    canonicalJson(snapshot.provenance.evaluation) === canonicalJson(evaluation.provenance?.() ?? null)
  );
}

/** At the end of a phase, supersedes the snapshots of a longer training that this one did not take again. */
export async function supersedeUnsettled({ known, writer }: SessionRecords, step: number): Promise<void> {
  for (const snapshot of known.unsettled()) {
    const why =
      snapshot.step > step
        ? `the phase ended at step ${step}`
        : "no threshold at this step was crossed again";
    await writer.supersede(snapshot, why);
  }
}
