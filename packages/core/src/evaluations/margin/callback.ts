import { PeriodicCallback, type PeriodicOptions } from "../../callback/periodic-callback.ts";
import { splitOptions } from "../../callback/split-options.ts";
import { everyPercent } from "../../schedule/triggers.ts";
import { marginEvaluation } from "./evaluation.ts";
import { marginShape, type MarginOptions } from "./options.ts";

/** The options of `marginEvaluation` and a schedule; by default every 25 % of the phase, at its start and at its end. */
export type PeriodicMarginOptions = MarginOptions & Partial<PeriodicOptions>;

/**
 * Measures during training what the model believes: `new PeriodicMarginCallback({ probes: "belief_probes.json" })`.
 *
 * @throws PeriodicEvalError `config` for a wrong option. A missing file is an error before step 1.
 */
export class PeriodicMarginCallback extends PeriodicCallback {
  constructor(options: PeriodicMarginOptions) {
    const { periodic, evaluation } = splitOptions("PeriodicMarginCallback options", marginShape, options);
    super(marginEvaluation(evaluation), { schedule: [everyPercent(25)], id: "margin", ...periodic });
  }
}
