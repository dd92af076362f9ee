import { PeriodicCallback, type PeriodicOptions } from "../../callback/periodic-callback.ts";
import { splitOptions } from "../../callback/split-options.ts";
import { everyPercent } from "../../schedule/triggers.ts";
import { leakageEvaluation } from "./evaluation.ts";
import { leakageShape, type LeakageOptions } from "./options.ts";

/** The options of `leakageEvaluation` and a schedule; by default every 25 % of the phase, at its start and at its end. */
export type PeriodicLeakageOptions = LeakageOptions & Partial<PeriodicOptions>;

/**
 * Measures during training whether a trait of one persona spreads to others:
 * `new PeriodicLeakageCallback({ source: "pirate" })`.
 *
 * @throws PeriodicEvalError `config` for a wrong option. A missing file is an error before step 1.
 */
export class PeriodicLeakageCallback extends PeriodicCallback {
  constructor(options: PeriodicLeakageOptions = {}) {
    const { periodic, evaluation } = splitOptions("PeriodicLeakageCallback options", leakageShape, options);
    super(leakageEvaluation(evaluation), { schedule: [everyPercent(25)], id: "leakage", ...periodic });
  }
}
