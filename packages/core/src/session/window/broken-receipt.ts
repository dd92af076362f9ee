import type { Evidence } from "../../contracts/snapshot.ts";
import { PeriodicEvalError } from "../../errors.ts";
import type { Reporter } from "../records/reporter.ts";

/** Where windows report progress and broken receipts, besides warnings and errors. */
export interface WindowReporter extends Reporter {
  /** Reports that `done` of `total` rows are measured. */
  measuring(event: {
    readonly id: string;
    readonly step: number;
    readonly done: number;
    readonly total: number;
  }): void;
  /** Reports how the budget reduces measurements. */
  plan(message: string): void;
  /** Stops training, throws or does nothing, depending on `onBrokenReceipt`. */
  receiptBroken(message: string, makeError: () => PeriodicEvalError): void;
}

/** Reports that a guard saw training disturbed. */
export function reportDisturbance(
  reporter: WindowReporter,
  evidence: Evidence,
  by: string,
  isFirst = true,
): void {
  const guard = evidence.part;
  const change = describeChange(evidence);
  if (isFirst) reporter.warn(`guard "${guard}"`, `training was disturbed by ${by}: ${change}`);
  const makeError = () =>
    new PeriodicEvalError({
      code: "receipt",
      where: `guard "${guard}"`,
      got: `a training disturbed by ${by} (${change})`,
      expected: "measurements that leave training unchanged",
      fix: 'Fix the callback or evaluation that changes training, or set onBrokenReceipt: "record" to continue.',
    });
  reporter.receiptBroken(`guard "${guard}" saw training disturbed by ${by}`, makeError);
}

export function describeChange({ before, after, note }: Evidence): string {
  const change = `${before ?? "unknown"} before, ${after ?? "unknown"} after`;
  return note === undefined ? change : `${change}; ${note}`;
}
