import { keyText } from "@periodic-eval/store";
import { withMinuteLines } from "../../model/minute-lines.ts";
import { budgetKey } from "../budget/describe-plan.ts";
import type { SessionParts } from "./begin.ts";

/** Returns the measurements that are being graded, for messages. */
export const gradingKeys = ({ records }: Pick<SessionParts, "records">): string =>
  records.known
    .all()
    .filter(({ status }) => status === "grading")
    .map(keyText)
    .join(", ");

/** Waits for grading, at most as long as the budget allows. Returns whether it is done. */
export function waitForGrading(parts: Pick<SessionParts, "options" | "log" | "records">): Promise<boolean> {
  const { options, log, records } = parts;
  // After an abort nothing is waited for: a resumed run finishes the grading.
  // Nor is anything waited for that could not be written.
  const isEnding = options.signal?.aborted === true || records.lost() !== null;
  const seconds = isEnding ? 0 : (options.budget?.drainSeconds ?? 600);
  return withMinuteLines(
    (line) => log.warn("session", line),
    (waited) =>
      `the session has waited ${waited} s for the grading of ${gradingKeys(parts)}; it goes on after ${seconds} s (${budgetKey("drain_seconds", options.budget ?? {})}), and a resumed run then grades the rest`,
    () => records.grading.drain(seconds),
  );
}
