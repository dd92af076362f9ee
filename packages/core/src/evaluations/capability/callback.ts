import { PeriodicCallback, type PeriodicOptions } from "../../callback/periodic-callback.ts";
import { splitOptions } from "../../callback/split-options.ts";
import { everyPercent } from "../../schedule/triggers.ts";
import { capabilityEvaluation } from "./evaluation.ts";
import { capabilityShape, type CapabilityOptions } from "./options.ts";

/** The options of `capabilityEvaluation` and a schedule; by default every 20 % of the phase, at its start and at its end. */
export type PeriodicCapabilityOptions = CapabilityOptions & Partial<PeriodicOptions>;

/**
 * Measures during training what the model still knows: `new PeriodicCapabilityCallback({ questions: "arc.jsonl" })`.
 *
 * @throws PeriodicEvalError `config` for a wrong option. A missing file is an error before step 1.
 */
export class PeriodicCapabilityCallback extends PeriodicCallback {
  constructor(options: PeriodicCapabilityOptions) {
    const { periodic, evaluation } = splitOptions(
      "PeriodicCapabilityCallback options",
      capabilityShape,
      options,
    );
    super(capabilityEvaluation(evaluation), {
      schedule: [everyPercent(20)],
      id: "capability",
      ...periodic,
    });
  }
}
