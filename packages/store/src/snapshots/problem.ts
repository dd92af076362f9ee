import type { RunProblem, SnapshotKey } from "@periodic-eval/contracts";

type Found = Pick<RunProblem, "file" | "kind" | "key" | "got" | "expected">;

/** Kinds whose file is not used as a snapshot. */
const invalidKinds: readonly RunProblem["kind"][] = ["unreadable", "edited"];

/**
 * Returns a problem with its effect on the run.
 *
 * @param isStart Whether the measurement is its phase's start, by its thresholds. Default: whether it is at step 0.
 */
export function problemOf(found: Found, isStart = found.key?.step === 0): RunProblem {
  const effect = effectOf(found, isStart);
  const { got, expected, kind } = found;
  return {
    ...found,
    effect,
    message: `got ${got}, expected ${expected}; ${effect}`,
    invalid: invalidKinds.includes(kind),
  };
}

function effectOf({ kind, key }: Found, isStart: boolean): string {
  if (kind === "duplicate") return "this file is not used";
  if (kind === "unavailable") return "it is not verified";
  if (key !== null && isBaseline(key, isStart))
    return `baseline of "${key.phase}" lost: verdicts of "${key.id}" compare with nothing`;
  return kind === "rows" ? "its metrics stand, but it is compared with nothing" : "this measurement is lost";
}

/** Whether later measurements are compared with this one. */
const isBaseline = ({ id }: SnapshotKey, isStart: boolean): boolean => isStart || id.endsWith(".adapter_off");
