import type { TrainerCallback } from "../../contracts/callback.ts";
import type { AnyEvaluation, Row } from "../../contracts/evaluation.ts";
import type { Json } from "../../contracts/json.ts";
import { errorMessage } from "../../internal/error-message.ts";
import { canonicalJson } from "../../random/hash.ts";
import { keyText } from "../../snapshots/order.ts";
import type { Snapshot } from "../../contracts/snapshot.ts";
import { startGrading } from "./background-grading.ts";
import { isAdapterOff } from "./baseline.ts";
import { commit, rowsOf } from "./commit.ts";
import { lookOf, spentBy } from "./compare.ts";
import { percentOf, type Firing } from "./new-record.ts";
import type { Run } from "../run.ts";

/** What is about to be measured. */
interface Fresh {
  readonly evaluation: Pick<AnyEvaluation, "name" | "version">;
  readonly on: "model" | "base";
  readonly provenance: Pick<Snapshot["provenance"], "hash">;
  readonly weights: string | null;
}

/** Null where a record found at the same key holds what measuring would give; else why it does not. */
export function whyNotAdopted(
  found: Snapshot,
  { evaluation, on, provenance, weights }: Fresh,
): string | null {
  if (found.status !== "complete" && found.status !== "grading") return `it was ${found.status}`;
  if (found.evaluation !== evaluation.name) return `it was of the evaluation ${found.evaluation}`;
  if (found.evaluation_version !== evaluation.version) return `it was of version ${found.evaluation_version}`;
  if (found.on !== on) return `it was measured on the ${found.on}`;
  if (found.provenance.hash !== provenance.hash) return "its items, options, model or seed were others";
  if (found.weights === null || weights === null) return "nothing shows that its weights were the same";
  return found.weights === weights ? null : "its weights were others";
}

/** Takes over a record of a training that was cut off; its grading, if cut off as well, goes on. */
export async function adopt(run: Run, found: Snapshot, firing: Firing, by: TrainerCallback): Promise<void> {
  const { at, crossed, runStepOffset } = firing;
  const place: Snapshot = {
    ...found,
    crossed: [...crossed],
    max_steps: at.maxSteps,
    pct: percentOf(at),
    epoch: at.epoch,
    run_step: runStepOffset + at.step,
  };
  // Where the phase's length changed, the numbers stand and the thresholds are others.
  const isSame = canonicalJson(place as Json) === canonicalJson(found as Json);
  const rows = isSame
    ? null
    : await readRows(run, found, "so it keeps the thresholds of the earlier training");
  if (rows === null) {
    run.records.settle(found);
    run.finished.push({ snapshot: found, failure: null });
  } else {
    await commit(run, place, rows);
  }
  if (found.status === "grading") await goOnGrading(run, rows === null ? found : place, by);
}

/** The rows of a record; null where they cannot be read, which is warned of with what is done `then`. */
export async function readRows(run: Run, snapshot: Snapshot, then: string): Promise<readonly Row[] | null> {
  try {
    return await rowsOf(run, snapshot);
  } catch (error) {
    run.telling.warn(
      "resume",
      `the rows of ${keyText(snapshot)} cannot be read, ${then}: ${errorMessage(error)}`,
    );
    return null;
  }
}

/** Takes up what was measured but not graded when a session ended, in this phase up to the resumed step and in others. */
export async function finishGrading(run: Run): Promise<void> {
  // A look waits for the grading of its baseline, where that has begun.
  const rank = ({ id }: Snapshot) => (isAdapterOff(run, id) ? 0 : 1);
  for (const snapshot of [...run.records.all()].sort((a, b) => rank(a) - rank(b))) {
    if (snapshot.status === "grading" && run.records.isSettled(snapshot))
      await goOnGrading(run, snapshot, null);
  }
}

async function goOnGrading(run: Run, snapshot: Snapshot, by: TrainerCallback | null): Promise<void> {
  const asking =
    by ?? run.callbacks.find(({ asks = [] }) => asks.some((evaluation) => isOf(snapshot, evaluation)));
  const evaluation = asking?.asks?.find((asked) => isOf(snapshot, asked));
  if (asking === undefined || evaluation === undefined) {
    run.telling.warn(
      "resume",
      `${keyText(snapshot)} is not graded yet, and no callback here asks for its evaluation`,
    );
    return;
  }
  const look = lookOf(run, snapshot, null);
  // What the comparison may spend was settled when it was measured.
  const alpha = spentBy(snapshot) ?? look.alpha;
  const base: Snapshot = { ...snapshot, status: snapshot.reason === null ? "complete" : "partial" };
  const rows = await readRows(run, snapshot, "so it stays ungraded");
  if (rows !== null) startGrading(run, { base, rows, evaluation, by: asking, look: { ...look, alpha } });
}

/** Same evaluation with the same options; asked after `items`, as provenance wants. */
function isOf(snapshot: Snapshot, evaluation: AnyEvaluation): boolean {
  return (
    evaluation.grade !== undefined &&
    snapshot.evaluation === evaluation.name &&
    snapshot.evaluation_version === evaluation.version &&
    canonicalJson(snapshot.provenance.evaluation) === canonicalJson(evaluation.provenance?.() ?? null)
  );
}

/** At the end of a phase, sets aside what a longer training left that this one did not come to again. */
export async function supersedeUnsettled(run: Run): Promise<void> {
  for (const snapshot of run.records.unsettled()) {
    const why =
      snapshot.step > run.progress.step
        ? `the phase ended at step ${run.progress.step}`
        : "no threshold at this step was crossed again";
    await setAside(run, snapshot, why);
  }
}

/** Sets a record aside that does not stand for this training; where the store refuses, it stays, with a warning. */
export async function setAside(run: Run, snapshot: Snapshot, why: string): Promise<void> {
  try {
    await run.store.supersede(snapshot, why);
    run.records.remove(snapshot);
  } catch (error) {
    run.telling.warn("store", `could not set ${keyText(snapshot)} aside: ${errorMessage(error)}`);
  }
}
