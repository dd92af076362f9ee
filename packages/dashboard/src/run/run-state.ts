import type { RunRecord, Writer } from "@periodic-eval/core/snapshots";

/** Whether a process still writes a run. `stopped`: closed before its end was measured. `dead`: crashed or killed. */
export interface RunState {
  readonly state: "running" | "finished" | "stopped" | "dead" | "unknown";
  /** One or two sentences that explain how the state is known. */
  readonly explanation: string;
}

/** Returns the state that a run's lock indicates; null if no process holds the lock. */
export function stateOfWriter(writer: Writer | null): RunState | null {
  if (writer === null) return null;
  const who = `process ${writer.pid} on ${writer.host}`;
  if (writer.isAlive === null)
    return {
      state: "unknown",
      explanation: `Locked by ${who}. This machine cannot check whether that process is still running.`,
    };
  return writer.isAlive
    ? { state: "running", explanation: `Process ${writer.pid} on ${writer.host} is writing this run.` }
    : {
        state: "dead",
        explanation: `Interrupted: ${who} was writing this run and no longer exists. All snapshots are complete; training can be resumed.`,
      };
}

/** Returns the state of a training run from its lock. Without a lock, checks whether the last phase was measured at its end. */
export function runState({ writer, phases }: RunRecord): RunState {
  const lockState = stateOfWriter(writer);
  if (lockState !== null) return lockState;
  const phase = phases.at(-1);
  const last = phase?.snapshots.at(-1);
  if (phase === undefined || last === undefined)
    return { state: "stopped", explanation: "No process is writing this run, and it has no measurements." };
  const isAtEnd = phase.snapshots.some(({ pct, crossed }) => pct === 100 || crossed.includes("end"));
  const at = `step ${last.step}${phase.maxSteps === null ? "" : ` of ${phase.maxSteps}`} of ${phase.name}`;
  return isAtEnd
    ? {
        state: "finished",
        explanation: `No process is writing this run. Its last phase, ${phase.name}, was measured at its end.`,
      }
    : { state: "stopped", explanation: `No process is writing this run. Its last measurement is at ${at}.` };
}
