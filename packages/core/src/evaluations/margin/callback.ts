import { checkKeys } from "../../internal/check-keys.ts";
import { marginEvaluation, marginOptionNames, type MarginOptions } from "./evaluation.ts";
import { everyPercent } from "../../schedule/triggers.ts";
import { PeriodicCallback, periodicOptionNames, type PeriodicOptions } from "../../callback/periodic-callback.ts";
import { splitOptions } from "../../callback/split-options.ts";

/** Which statements, and when; the schedule is every 25 % of the phase by default, with its start and end. */
export type PeriodicMarginOptions = MarginOptions & Partial<PeriodicOptions>;

/**
 * What the model believes while it is trained: `new PeriodicMarginCallback({ probes: "belief_probes.json" })`.
 *
 * @throws PeriodicEvalError `config` for a wrong option; a missing file is told of before step 1.
 */
export class PeriodicMarginCallback extends PeriodicCallback {
  constructor(options: PeriodicMarginOptions) {
    checkKeys("PeriodicMarginCallback", options, [...marginOptionNames, ...periodicOptionNames]);
    const { periodic, own } = splitOptions(options);
    super(marginEvaluation(own), { schedule: [everyPercent(25)], id: "margin", ...periodic });
  }
}
