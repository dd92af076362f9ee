import type { Evidence } from "../contracts/snapshot.ts";

/** What the guards' evidence says of one window. */
export interface ReceiptSummary {
  /** True: everything watched was seen unchanged. False: training was disturbed. Null: something was not observed. */
  readonly intact: boolean | null;
  /** Parts seen disturbed; advisory ones are listed apart. */
  readonly broken: readonly string[];
  readonly notObserved: readonly string[];
  /** Advisory parts that were disturbed: worth a look, no disturbance of training. */
  readonly advisories: readonly string[];
}

/** Sums evidence up. No evidence at all is `null`, not "intact": nobody looked. */
export function summarizeReceipt(receipt: readonly Evidence[]): ReceiptSummary {
  const parts = (is: (evidence: Evidence) => boolean) => receipt.filter(is).map(({ part }) => part);
  const broken = parts(({ intact, advisory }) => intact === false && advisory !== true);
  const notObserved = parts(({ intact, advisory }) => intact === null && advisory !== true);
  const advisories = parts(({ intact, advisory }) => intact === false && advisory === true);
  const isUnknown = receipt.length === 0 || notObserved.length > 0;
  return { intact: broken.length > 0 ? false : isUnknown ? null : true, broken, notObserved, advisories };
}
