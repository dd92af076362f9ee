import type { TrainerCallback, Budget, BudgetLimit } from "@periodic-eval/contracts";
import { camelCase } from "@periodic-eval/contracts/options";
import { secondsText, withinGrace } from "../../statistics/format.ts";
import { type Wanted, type Share, plannedSeconds } from "./share-seconds.ts";

interface Plan {
  /** The measurements still to come before the end, and what each id gets of them. */
  readonly ahead: readonly Wanted[];
  readonly shares: ReadonlyMap<string, Share>;
  /** Seconds of measuring so far, and expected for the end. */
  readonly windows: number;
  readonly kept: number;
  /** Expected seconds of training; null if its speed is not known yet. */
  readonly projected: number | null;
  readonly overheadPercent: number | null;
  readonly graceSeconds: number;
  /** The options that allow more measuring; null if nothing is reduced. */
  readonly remedy: string | null;
}

/**
 * Returns the number of measurements between start and end, their size and the expected overhead in one line; null if none is
 * planned any more.
 */
export function describePlan(plan: Plan): string | null {
  if (plan.ahead.length === 0) return null;
  const ahead = plan.ahead.map((wanted) => ({ ...wanted, share: plan.shares.get(wanted.id)! }));
  const planned = ahead.map(describeShare).join("; ");
  const fix = plan.remedy === null ? "" : `. ${plan.remedy}`;
  return `between start and end ${planned}; ${describeOverhead(plan)}${fix}`;
}

/**
 * Returns `40 s of measuring expected with start and end, 20 % of 200 s of training`, or
 * `2.1 s of measuring expected with start and end beside 8.8 s of training, within the 60 s that the budget always allows`. Start and
 * end alone may take longer.
 */
function describeOverhead(plan: Plan): string {
  const { ahead, shares, windows, kept, projected, overheadPercent, graceSeconds } = plan;
  const seconds = windows + kept + plannedSeconds(ahead, shares);
  // Only the grace allows more than the ceiling.
  const isByGrace =
    projected !== null &&
    overheadPercent !== null &&
    seconds > (overheadPercent / 100) * projected &&
    seconds <= graceSeconds;
  const grace = withinGrace(graceSeconds);
  const expected = `${secondsText(seconds)} of measuring expected with start and end`;
  if (isByGrace) return `${expected} beside ${secondsText(projected)} of training, ${grace}`;
  if (projected !== null) return `${expected}, ${shareText(seconds, projected)}`;
  return seconds <= graceSeconds ? `${expected}, ${grace}` : expected;
}

/** Returns `19 % of 7.7 s of training`. */
const shareText = (seconds: number, projected: number): string =>
  `${Number(((100 * seconds) / projected).toPrecision(2))} % of ${secondsText(projected)} of training`;

type Shared = Wanted & { readonly share: Share };

function describeShare({ id, share, size, measurements }: Shared): string {
  const count =
    share.measurements === measurements ? measurements : `${share.measurements} of ${measurements}`;
  const rows =
    share.rows === 0 ? "" : ` of ${share.rows / size.step} of ${size.whole / size.step} ${size.unit}`;
  return `${count} ${measurements === 1 ? "measurement" : "measurements"} "${id}"${rows}`;
}

/** Returns an option of the budget as the caller writes it: `budget.graceSeconds`, in a block `budget.grace_seconds`. */
export const budgetKey = (option: BudgetLimit | "drain_seconds", { inBlock = false }: Budget): string =>
  `budget.${inBlock ? option : camelCase(option)}`;

/** Returns the limits of a budget, with the defaults. */
export function limitsOf(
  budget: Budget,
): Required<Pick<Budget, "overheadPercent" | "graceSeconds" | "secondsPerWindow" | "inBlock">> {
  // An option may be undefined, which a spread would keep.
  const { overheadPercent = 20, graceSeconds = 60, secondsPerWindow = null, inBlock = false } = budget;
  return { overheadPercent, graceSeconds, secondsPerWindow, inBlock };
}

interface AllMeasurements {
  /** Seconds that the whole measurements of a phase take, with start and end. */
  readonly seconds: number;
  /** The part of each evaluation in them. */
  readonly evaluations: readonly { readonly id: string; readonly seconds: number }[];
  readonly maxSteps: number;
  readonly budget: Budget;
}

/**
 * Returns the time that a step must take for all measurements to fit, and what to leave out if steps are faster, the costliest first. Null
 * if they always fit, or never because of `secondsPerWindow`.
 */
export function describeStepTime({ seconds, evaluations, maxSteps, budget }: AllMeasurements): string | null {
  const { overheadPercent, graceSeconds, secondsPerWindow } = limitsOf(budget);
  if (overheadPercent === null || secondsPerWindow !== null || seconds <= graceSeconds) return null;
  const stepTime = (all: number) => secondsText((100 * all) / overheadPercent / maxSteps);
  const costliest = evaluations.toSorted((a, b) => b.seconds - a.seconds);
  let left = seconds;
  const without = costliest.slice(0, Math.min(3, evaluations.length - 1)).map(({ seconds: cost }, at) => {
    left -= cost;
    const ids = costliest.slice(0, at + 1).map(({ id }) => id);
    return `; without ${ids.join(", ")}, ${left <= graceSeconds ? "any" : `at least ${stepTime(left)}`}`;
  });
  const rest =
    left <= graceSeconds
      ? ""
      : "; with faster steps, measurements between start and end have fewer items or are skipped";
  return `all measurements take ${secondsText(seconds)}. They stay under ${overheadPercent} % overhead if a step takes at least ${stepTime(seconds)}${without.join("")}${rest}`;
}

/** Names the option for fewer questions, after a space, if a callback has one; else empty. */
export const fewerQuestions = (callbacks: readonly TrainerCallback[], { inBlock = false }: Budget): string =>
  callbacks.some(({ asks = [] }) => asks.some(({ name }) => name === "capability"))
    ? ` Or ask fewer questions: ${inBlock ? "subsample_n" : "subsample of the callback"}.`
    : "";
