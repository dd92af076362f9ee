import type { SnapshotKey } from "../contracts/snapshot.ts";

/**
 * Describes what a run loses with a measurement.
 *
 * @param isStart Whether it is its phase's start, by its thresholds. Default: whether it is at step 0.
 */
export function effectOfLoss(key: SnapshotKey, isStart = key.step === 0): string {
  const { phase, id } = key;
  return isBaseline(key, isStart)
    ? `baseline of "${phase}" lost: verdicts of "${id}" compare with nothing`
    : "this measurement is lost";
}

/** Whether later measurements are compared with this one. */
export const isBaseline = ({ id }: SnapshotKey, isStart: boolean): boolean =>
  isStart || id.endsWith(".adapter_off");
