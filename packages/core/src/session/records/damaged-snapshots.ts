import type {
  TrainerCallback,
  Progress,
  InterruptedMeasurement,
  SessionState,
  RunProblem,
  Snapshot,
  SnapshotKey,
} from "@periodic-eval/contracts";
import { crossings } from "../../schedule/crossings.ts";
import { keyText } from "@periodic-eval/store";
import type { SessionRecords } from "./records.ts";

/** Where a phase begins or resumes. */
export interface Resumption {
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
 * @param found The snapshots in the store.
 * @returns The snapshots that remain, and the measurements of the resumed step to take again, by id.
 */
export async function replaceDamaged(
  { store, baselines, reporter }: SessionRecords,
  found: readonly Snapshot[],
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
  const remaining = found.filter((one) => !(damaged.has(keyText(one)) && isAhead(one)));
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
  const callback = callbacks.find((one) => one.id === id);
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
