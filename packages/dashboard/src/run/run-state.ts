import type { RunRecord, Writer } from "@periodic-eval/core/snapshots";

/** What is known of whether somebody still writes a run. `stopped`: given up in order before its end. */
export interface RunState {
  readonly state: "running" | "finished" | "stopped" | "dead" | "unknown";
  /** How that is known. */
  readonly told: string;
}

/** By who holds the lock. Null: nobody does. */
export function stateOfWriter(writer: Writer | null): RunState | null {
  if (writer === null) return null;
  const who = `process ${writer.pid} on ${writer.host}`;
  if (writer.isAlive === null)
    return { state: "unknown", told: `Held by ${who}: whether it still runs cannot be seen from here.` };
  return writer.isAlive
    ? { state: "running", told: `Still being written by ${who}.` }
    : {
        state: "dead",
        told: `Interrupted: ${who} held this run and is gone. What it wrote is whole; training can be resumed.`,
      };
}

/** Of a run of callbacks: by its lock, and where nobody holds that, by whether its last phase was looked at to its end. */
export function runState({ writer, phases }: RunRecord): RunState {
  const held = stateOfWriter(writer);
  if (held !== null) return held;
  const phase = phases.at(-1);
  const last = phase?.snapshots.at(-1);
  if (phase === undefined || last === undefined)
    return { state: "stopped", told: "Nobody holds this run, and nothing was measured in it." };
  const isAtEnd = phase.snapshots.some(({ pct, crossed }) => pct === 100 || crossed.includes("end"));
  const at = `step ${last.step}${phase.maxSteps === null ? "" : ` of ${phase.maxSteps}`} of ${phase.name}`;
  return isAtEnd
    ? {
        state: "finished",
        told: `Nobody holds this run, and its last phase, ${phase.name}, was looked at to its end.`,
      }
    : { state: "stopped", told: `Nobody holds this run, and its last measurement is at ${at}.` };
}
