import type { PhaseRecord } from "@periodic-eval/contracts";
import { plural } from "../html/format.ts";

/**
 * Returns how long a phase is and how it ended: `200 steps`; `interrupted at step 23 of 200`, or `after step 20 of 200` if only the
 * last measurement is known; `running, measured at step 40 of 200`; `finished at step 120 of 200` if it ended early.
 */
export function phaseText({ state, closedAt, maxSteps, snapshots }: PhaseRecord): string {
  const measuredAt = snapshots.at(-1)!.step;
  const of = maxSteps === null ? "" : ` of ${maxSteps}`;
  const whole = maxSteps === null ? "unknown length" : plural(maxSteps, "step");
  switch (state) {
    case "interrupted":
      return `interrupted ${closedAt === null ? `after step ${measuredAt}` : `at step ${closedAt}`}${of}`;
    case "running":
      return `running, measured at step ${measuredAt}${of}`;
    case "unknown":
      return whole;
    case "finished":
      return closedAt === null || closedAt === maxSteps ? whole : `finished at step ${closedAt}${of}`;
  }
}
