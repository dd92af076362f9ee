import type { ReceiptSummary } from "../contracts/run-record.ts";
import type { Evidence } from "../contracts/snapshot.ts";

/** Summarizes evidence. Without evidence `intact` is null: nothing was observed. */
export function summarizeReceipt(receipt: readonly Evidence[]): ReceiptSummary {
  const parts = (is: (evidence: Evidence) => boolean) => receipt.filter(is).map(({ part }) => part);
  const broken = parts(({ intact, advisory }) => intact === false && advisory !== true);
  const notObserved = parts(({ intact, advisory }) => intact === null && advisory !== true);
  const advisories = parts(({ intact, advisory }) => intact === false && advisory === true);
  const isUnknown = receipt.length === 0 || notObserved.length > 0;
  return { intact: broken.length > 0 ? false : isUnknown ? null : true, broken, notObserved, advisories };
}
