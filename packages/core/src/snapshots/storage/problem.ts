import type { RunProblem } from "../../contracts/snapshot.ts";
import { effectOfLoss, isBaseline } from "../effect-of-loss.ts";

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
  if (kind === "index") return "deleted snapshots cannot be seen";
  if (kind === "implausible") return "its values cannot be trusted";
  if (kind === "duplicate") return "this file is not used";
  if (kind === "misplaced") return "it counts by its content, not by its name";
  if (kind === "unlisted") return "it may be of another run";
  if (kind === "unavailable") return "it is not verified";
  if (key === null) return "this measurement is lost";
  const lost = effectOfLoss(key, isStart);
  return kind === "rows" && !isBaseline(key, isStart)
    ? "its metrics stand, but it is compared with nothing"
    : lost;
}
