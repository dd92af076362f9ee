import type { PhaseClosing, RunRecord, Writer } from "@periodic-eval/contracts";
import { phaseText } from "../charts/metric-curves.ts";

/**
 * Whether a run goes on. `interrupted`: training was stopped, or its process was killed. `unknown`: a process that cannot be
 * seen from here may write the run, or nothing says how it ended.
 */
export interface RunState {
  readonly state: "running" | "finished" | "interrupted" | "unknown";
  /** One or two sentences that explain how the state is known. */
  readonly explanation: string;
}

/** Returns the state that a run's lock indicates; null if no process holds the lock. */
export function stateOfWriter(writer: Writer | null): RunState | null {
  if (writer === null) return null;
  // The name of the host that core's platform for browsers reports.
  const who = writer.host === "browser" ? "a tab of this browser" : `process ${writer.pid} on ${writer.host}`;
  if (writer.isAlive === null)
    return {
      state: "unknown",
      explanation: `Locked by ${who}. That process cannot be seen from here, and no renewal of its lock has been seen yet.`,
    };
  return writer.isAlive
    ? { state: "running", explanation: `${who.charAt(0).toUpperCase()}${who.slice(1)} is writing this run.` }
    : {
        state: "interrupted",
        explanation: `Interrupted: ${who} was writing this run and has stopped. All snapshots are complete; training can be resumed.`,
      };
}

/** Returns the state of a training run from its lock; without a lock, from where its last phase closed or was measured last. */
export function runState(run: RunRecord): RunState {
  const { writer, phases, closings } = run;
  const lockState = stateOfWriter(writer);
  if (lockState !== null) return lockState;
  const waiting = waitingPhases(run);
  // A pipeline ends with the phase that stop_when ended.
  if (waiting.length > 0 && hasStopped(run)) {
    const names = `${waiting.join(", ")} ${waiting.length === 1 ? "was" : "were"}`;
    return unwritten("finished", `stop_when ended ${phases.at(-1)!.name}; ${names} not trained.`);
  }
  if (waiting.length > 0) return unwritten("interrupted", `Its phase ${waiting[0]} has not begun.`);
  const last = phases.at(-1);
  const closing = closings.at(-1);
  // A phase that measures nothing has no snapshots, but it closes.
  if (closing !== undefined && closing.phase !== last?.name) return stateOfClosing(closing);
  if (last === undefined) return unwritten("unknown", "It has no measurements.");
  const { name, state, closedAt } = last;
  if (state === "interrupted") return unwritten(state, `${name}: ${phaseText(last)}.`);
  const isMeasured = state === "finished" && closedAt === null;
  return unwritten(state, `Its last phase, ${name}, ${isMeasured ? "was measured at its end" : "finished"}.`);
}

/** Returns the declared phases that have not begun. */
const waitingPhases = ({ phases, closings }: RunRecord): readonly string[] =>
  closings.flatMap(({ step, finished, phase }) =>
    step === 0 && !finished && !phases.some(({ name }) => name === phase) ? [phase] : [],
  );

/** Whether `stop_when` ended the last phase that has begun. */
function hasStopped({ phases, closings }: RunRecord): boolean {
  const [last, closing] = [phases.at(-1), closings.at(-1)];
  return last?.state === "finished" && closing?.phase === last.name && closing.stop !== undefined;
}

/** Returns the state of a run that no process is writing. */
export const unwritten = (state: RunState["state"], why: string): RunState => ({
  state,
  explanation: `No process is writing this run. ${why}`,
});

/**
 * Returns the sentence on the process that writes the run, on the interruption that ended it, or on phases that were not trained; null
 * for a run whose phases have finished.
 */
export function notFinished(run: RunRecord): string | null {
  const { state, explanation } = runState(run);
  const isWhole = run.writer === null && state !== "interrupted" && waitingPhases(run).length === 0;
  return isWhole ? null : explanation;
}

function stateOfClosing({ phase, step, maxSteps, finished }: PhaseClosing): RunState {
  if (finished) return unwritten("finished", `Its last phase, ${phase}, finished.`);
  const of = maxSteps === null ? "" : ` of ${maxSteps}`;
  return unwritten("interrupted", `${phase}: interrupted at step ${step}${of}.`);
}
