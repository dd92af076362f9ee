import { PeriodicEvalError } from "../../errors.ts";
import type { Evidence } from "../../contracts/snapshot.ts";
import type { Run } from "../run.ts";

/** Says that a guard saw training disturbed, and does what the session was told to do then. */
export function disturbed(run: Run, evidence: Evidence, by: string, isTold = false): void {
  const guard = evidence.part;
  const message = `guard "${guard}" saw training disturbed by ${by}`;
  if (!isTold) run.telling.warn(`guard "${guard}"`, `training was disturbed by ${by}: ${seen(evidence)}`);
  const { onBrokenReceipt = "stop" } = run.options;
  if (onBrokenReceipt === "stop") {
    run.brokenReceipt ??= message;
    run.stop ??= message;
  }
  if (onBrokenReceipt === "throw") {
    run.toThrow ??= new PeriodicEvalError({
      code: "receipt",
      where: `guard "${guard}"`,
      got: `a training disturbed by ${by} (${seen(evidence)})`,
      expected: "measuring that leaves training as it was",
      fix: 'Mend what the callback or evaluation changes, or set onBrokenReceipt: "record" to go on regardless.',
    });
  }
}

/** Evidence in words. */
export function seen({ before, after, note }: Evidence): string {
  const change = `${before ?? "unknown"} before, ${after ?? "unknown"} after`;
  return note === undefined ? change : `${change}; ${note}`;
}
