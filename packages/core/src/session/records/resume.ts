import {
  type TrainerCallback,
  type AnyEvaluation,
  type Json,
  snapshotSchema,
  type Snapshot,
  canonicalJson,
  type Progress,
  type InterruptedMeasurement,
  type SessionState,
  type RunProblem,
  type SnapshotKey,
} from "@periodic-eval/contracts";
import { keyText, workingSeconds } from "@periodic-eval/store";
import { plannedSteps, crossings } from "../../schedule/crossings.ts";
import { atSteps } from "../../schedule/triggers.ts";
import { familyAlpha } from "../../statistics/planned-comparisons.ts";
import { spentBy } from "./comparisons.ts";
import { percentOf, type Measurement } from "./new-snapshot.ts";
import { type SessionRecords, createRecords } from "./records.ts";

/** Returns null if a snapshot of the same key holds what measuring would give, else why it does not. */
export function whyNotAdopted(
  prior: Snapshot,
  { evaluation, on }: Pick<Measurement, "evaluation" | "on">,
  provenance: Pick<Snapshot["provenance"], "hash">,
  weights: string | null,
): string | null {
  if (prior.status !== "complete" && prior.status !== "grading") return `it was ${prior.status}`;
  if (prior.evaluation !== evaluation.name) return `it was of the evaluation ${prior.evaluation}`;
  if (prior.evaluation_version !== evaluation.version) return `it was of version ${prior.evaluation_version}`;
  if (prior.on !== on) return `it was measured on the ${prior.on}`;
  if (prior.provenance.hash !== provenance.hash) return "its items, options, model or seed were different";
  if (prior.weights === null || weights === null) return "its weights cannot be compared";
  return prior.weights === weights ? null : "its weights were different";
}

/** Adopts a snapshot of a training that was interrupted, and continues its grading if that was interrupted too. */
export async function adoptSnapshot(
  records: SessionRecords,
  prior: Snapshot,
  { at, crossed, runStep }: Measurement,
  callback: TrainerCallback,
): Promise<void> {
  const update: Snapshot = {
    ...prior,
    crossed: [...crossed],
    max_steps: at.maxSteps,
    pct: percentOf(at),
    epoch: at.epoch,
    run_step: runStep,
  };
  // If the phase's length changed, the numbers stand but the thresholds differ.
  const isSame = canonicalJson(update as Json) === canonicalJson(prior as Json);
  const rows = isSame
    ? null
    : await records.writer.rowsOrWarn(prior, "so it keeps the thresholds of the earlier training");
  if (rows === null) {
    records.known.settle(prior);
    records.writer.announce(prior);
  } else {
    await records.writer.commit(update, rows);
  }
  if (prior.status === "grading") await continueGrading(records, rows === null ? prior : update, [callback]);
}

/**
 * Grades the measurements whose answers are kept: those whose grading a session's end interrupted, and those whose grading failed
 * (a judge that could not be reached). In this phase up to the resumed step, and in all others.
 *
 * @param isOpen Whether a graded measurement is graded again, because some of its rows have no grades.
 */
export async function finishGrading(
  records: SessionRecords,
  callbacks: readonly TrainerCallback[],
  isOpen: (snapshot: Snapshot) => boolean = () => false,
): Promise<void> {
  const { known, baselines } = records;
  // A comparison waits for the grading of its baseline only if that has begun.
  const rank = ({ id }: Snapshot) => (baselines.isBaselineId(id) ? 0 : 1);
  for (const snapshot of known.settled().sort((a, b) => rank(a) - rank(b))) {
    if (snapshot.status === "grading") await continueGrading(records, snapshot, callbacks);
    else if (isGradable(snapshot)) await gradeAgain(records, snapshot, callbacks);
    else if (isOpen(snapshot)) await continueGrading(records, withoutGrades(snapshot), callbacks);
  }
}

/** Kinds of warnings that follow from grades, which another grading makes again. */
const gradeWarnings = new Set([
  "incoherent",
  "empty",
  "repeated",
  "ungraded",
  "truncated",
  "undecided",
  "cut_prompts",
  "judge_anchors",
  "source_lost",
  "source_without_trait",
]);

/** Returns a snapshot without what its grades gave: warnings, and keys beside those of the schema. */
function withoutGrades(snapshot: Snapshot): Snapshot {
  const known = Object.entries(snapshot).filter(([key]) => Object.hasOwn(snapshotSchema.shape, key));
  const warnings = snapshot.warnings.filter(({ kind }) => !gradeWarnings.has(kind));
  return { ...(Object.fromEntries(known) as Snapshot), warnings };
}

/** Whether a measurement failed although its answers are kept: its grading failed. */
const isGradable = ({ status, samples }: Snapshot): boolean => status === "failed" && samples !== null;

/** Whether the answers of a measurement are kept without grades. */
export const isUngraded = (snapshot: Snapshot): boolean =>
  snapshot.status === "grading" || isGradable(snapshot);

/**
 * Grades the rows of a failed measurement again, if a callback asks for its evaluation. `grade` receives the rows as the failed
 * grading left them, and may keep their verdicts.
 */
async function gradeAgain(
  { comparisons, grading, known, writer }: SessionRecords,
  failed: Snapshot,
  callbacks: readonly TrainerCallback[],
): Promise<void> {
  const match = findEvaluation(failed, callbacks);
  if (match === null) return;
  const rows = await writer.rowsOrWarn(failed, "so it stays failed");
  if (rows === null) return;
  const { timing, provenance } = failed;
  const expected = (provenance.items ?? 0) * (match.evaluation.samplesPerItem ?? 1);
  const isWhole = timing.items >= expected;
  const base: Snapshot = {
    ...failed,
    status: isWhole ? "complete" : "partial",
    reason: isWhole ? null : `${timing.items} of ${expected} rows`,
  };
  // A grader may have added rows after the measured ones.
  const measured = rows.slice(0, timing.items);
  const { triggers = [] } = match.callback;
  const planned = plannedSteps(triggers, failed.max_steps)?.filter((step) => step > 0).length ?? null;
  const plan = comparisons.plan(base, planned);
  // Later measurements may have spent this one's level.
  const spent = known.settledOf(failed.phase, failed.id).map((snapshot) => spentBy(snapshot) ?? 0);
  const left = spent.reduce((rest, alpha) => rest - alpha, familyAlpha);
  const alpha = plan.alpha === null || left <= 0 ? null : Math.min(plan.alpha, left);
  await grading.record({ base, rows: measured, ...match, plan: { ...plan, alpha } }, null);
}

async function continueGrading(
  { comparisons, grading, writer, reporter }: SessionRecords,
  snapshot: Snapshot,
  callbacks: readonly TrainerCallback[],
): Promise<void> {
  const match = findEvaluation(snapshot, callbacks);
  if (match === null) {
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
  if (rows !== null) grading.start({ base, rows, ...match, plan: { ...plan, alpha } });
}

function findEvaluation(snapshot: Snapshot, callbacks: readonly TrainerCallback[]) {
  for (const callback of callbacks) {
    const evaluation = callback.asks?.find((ask) => isEvaluationOf(snapshot, ask));
    if (evaluation !== undefined) return { callback, evaluation };
  }
  return null;
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

/** Options of `gradeStored`. */
export interface GradeStoredOptions {
  /** Returns the evaluation that grades a snapshot's rows; null if there is none. */
  readonly evaluationOf: (snapshot: Snapshot) => AnyEvaluation | null;
  /** Whether a graded snapshot is graded again, because some of its rows have no grades. */
  readonly isOpen: (snapshot: Snapshot) => boolean;
  readonly signal: AbortSignal;
  /** Receives warnings. */
  readonly warn: (where: string, message: string) => void;
}

/**
 * Grades the measurements of a run whose answers are kept without grades, in all phases, as a resumed session would. Needs no
 * model.
 *
 * @param run Folder of the run. Locked while this runs.
 * @returns The snapshots that were not graded before, or not in all rows, as they are now.
 * @throws PeriodicEvalError `store` if another process uses the run.
 */
export async function gradeStored(
  run: string,
  { evaluationOf, isOpen, signal, warn }: GradeStoredOptions,
): Promise<readonly Snapshot[]> {
  const reporter = { warn, fail: () => undefined };
  // No snapshot has this phase, so that all belong to phases that are over.
  const common = { run, phase: "", clock: workingSeconds, gradingSignal: signal, reporter };
  const { store } = createRecords({ ...common, seed: "" });
  await store.open?.();
  try {
    const ungraded = (await store.list()).filter((snapshot) => isUngraded(snapshot) || isOpen(snapshot));
    for (const seed of new Set(ungraded.map(({ provenance }) => provenance.seed))) {
      const records = createRecords({ ...common, run: store, seed });
      records.known.load(await store.list(), null);
      const callbacks = ungraded.flatMap((snapshot): TrainerCallback[] => {
        const evaluation = snapshot.provenance.seed === seed ? evaluationOf(snapshot) : null;
        if (evaluation === null) return [];
        // The phase is over: it makes no other comparisons than those of its measurements.
        const steps = records.known.settledOf(snapshot.phase, snapshot.id).map(({ step }) => step);
        const measured = steps.filter((step) => step > 0);
        return [
          { id: snapshot.id, asks: [evaluation], triggers: measured.length === 0 ? [] : [atSteps(measured)] },
        ];
      });
      await finishGrading(records, callbacks, isOpen);
      await records.grading.drain(Infinity);
      await records.writer.writeAll();
    }
    return await Promise.all(ungraded.map(async (snapshot) => (await store.get(snapshot)) ?? snapshot));
  } finally {
    await store.close?.();
  }
}

/** Where a phase begins or resumes. */
interface Resumption {
  readonly phase: string;
  /** Null if the phase starts from its beginning. */
  readonly resumed: SessionState | null;
  readonly callbacks: readonly TrainerCallback[];
}

/** Returns the snapshots that a checkpoint knows: steps by `<phase>/<id>`. */
export function knownSteps(snapshots: readonly SnapshotKey[]): NonNullable<SessionState["snapshots"]> {
  const steps: Record<string, number[]> = {};
  for (const { phase, id, step } of snapshots) (steps[`${phase}/${id}`] ??= []).push(step);
  return steps;
}

/**
 * Supersedes the snapshots with damaged rows whose steps are still to come, and warns of each damaged snapshot whether it is
 * measured again.
 *
 * @param snapshots The snapshots in the store.
 * @returns The snapshots that remain, and the measurements of the resumed step to take again, by id.
 */
export async function replaceDamaged(
  { store, baselines, reporter }: SessionRecords,
  snapshots: readonly Snapshot[],
  { phase, resumed, callbacks }: Resumption,
): Promise<{
  readonly remaining: readonly Snapshot[];
  readonly requested: Readonly<Record<string, InterruptedMeasurement>>;
}> {
  const from = resumed?.progress.step ?? 0;
  const problems = ((await store.problems?.()) ?? []).filter(isLoss).sort((a, b) => a.key.step - b.key.step);
  const isAhead = (key: SnapshotKey) => key.phase === phase && key.step >= from;
  for (const { key, message } of problems.filter(({ kind, key: of }) => kind === "rows" && isAhead(of)))
    await store.supersede(key, message);
  const requested: Record<string, InterruptedMeasurement> = {};
  for (const [at, { key, effect }] of problems.entries()) {
    const request =
      resumed !== null && isAhead(key) && key.step === from
        ? requestOf(key, resumed.progress, callbacks)
        : null;
    if (request !== null) requested[key.id] = request;
    if (at >= mostWarnings) continue;
    const outcome = describeOutcome(key, request !== null || baselines.isBaselineId(key.id), {
      phase,
      from,
      resumed,
    });
    reporter.warn("resume", `${keyText(key)} ${outcome}; ${effect}`);
  }
  if (problems.length > mostWarnings)
    reporter.warn("resume", `${problems.length - mostWarnings} more snapshots are damaged`);
  const damaged = new Set(problems.map(({ key }) => keyText(key)));
  const remaining = snapshots.filter((snapshot) => !(damaged.has(keyText(snapshot)) && isAhead(snapshot)));
  return { remaining, requested };
}

/** Baselines have the lowest steps of their phase, and so come first. */
const mostWarnings = 20;

/** Describes whether a damaged snapshot is measured again. */
function describeOutcome(
  key: SnapshotKey,
  isRequested: boolean,
  { phase, from, resumed }: Pick<Resumption, "phase" | "resumed"> & { readonly from: number },
): string {
  if (isRequested) return "is measured again";
  if (key.phase !== phase) return "cannot be measured again, because its phase is over";
  if (key.step > from || resumed === null) return "is measured again if training crosses its threshold again";
  if (key.step < from) return `cannot be measured again, because training is at step ${from}`;
  return "is not measured again, because no schedule here measures it";
}

const isLoss = (problem: RunProblem): problem is RunProblem & { readonly key: SnapshotKey } =>
  problem.key !== null && ["rows", "edited", "unreadable"].includes(problem.kind);

/** Returns the request of a measurement at the resumed step; null if no schedule here takes it. */
function requestOf(
  { id, step }: SnapshotKey,
  at: Progress,
  callbacks: readonly TrainerCallback[],
): InterruptedMeasurement | null {
  const callback = callbacks.find((candidate) => candidate.id === id);
  const evaluation = callback?.asks?.[0];
  if (evaluation === undefined) return null;
  const { maxSteps, epoch, elapsedSeconds } = at;
  // Without `furthest`, which says that the thresholds of this step were crossed.
  const now = { step, maxSteps, epoch, elapsedSeconds, ended: step === maxSteps };
  return {
    by: id,
    evaluation: { name: evaluation.name, version: evaluation.version },
    on: callback?.on ?? "model",
    crossed: crossings(callback?.triggers ?? [], { ...now, step: step - 1, ended: false }, now),
    plannedComparisons: null,
  };
}
