import { checkKeys } from "../../internal/check-keys.ts";
import { leakageEvaluation, leakageOptionNames, type LeakageOptions } from "./evaluation.ts";
import { everyPercent } from "../../schedule/triggers.ts";
import { PeriodicCallback, periodicOptionNames, type PeriodicOptions } from "../../callback/periodic-callback.ts";
import { splitOptions } from "../../callback/split-options.ts";

/** What is looked for, in whom and when; the schedule is every 25 % of the phase by default, with its start and end. */
export type PeriodicLeakageOptions = LeakageOptions & Partial<PeriodicOptions>;

/**
 * Whether a trait of one persona spreads to others while it is trained: `new PeriodicLeakageCallback({ source: "pirate" })`.
 *
 * @throws PeriodicEvalError `config` for a wrong option; a missing file is told of before step 1.
 */
export class PeriodicLeakageCallback extends PeriodicCallback {
  constructor(options: PeriodicLeakageOptions = {}) {
    checkKeys("PeriodicLeakageCallback", options, [...leakageOptionNames, ...periodicOptionNames]);
    const { periodic, own } = splitOptions(options);
    super(leakageEvaluation(own), { schedule: [everyPercent(25)], id: "leakage", ...periodic });
  }
}
