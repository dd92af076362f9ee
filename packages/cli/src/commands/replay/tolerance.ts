/**
 * Returns the largest difference at which two values of a metric count as the same. Shares count answers: rounding changes
 * none, or moves a share by 1/n, so shares must agree but for the last digits of their sum. Sums and means of float32
 * log-probabilities depend on engine and machine: between wasm, cpu and tfjs-node on the embedded model, means (KL to the base
 * included) differ by at most 1.6e-6 and sums by 2e-7 of the size of their parts (2e-5 nats of a margin between sides of −130).
 * The tolerance is about ten times that.
 *
 * @param size Largest absolute value of that unit in the snapshot, because a small margin may have large sides.
 */
export const toleranceOf = (unit: string, size: number): number =>
  unit === "share" ? 1e-9 : 1e-5 + 2e-6 * size;

/** `toleranceOf` for messages. */
export const toleranceText =
  "shares exactly, all other values within 1e-5 and 2e-6 of the largest value of the unit";
