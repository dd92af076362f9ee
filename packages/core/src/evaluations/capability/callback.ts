import { checkKeys } from "../../internal/check-keys.ts";
import { capabilityEvaluation, type CapabilityOptions } from "./evaluation.ts";
import { everyPercent } from "../../schedule/triggers.ts";
import { PeriodicCallback, periodicOptionNames, type PeriodicOptions } from "../../callback/periodic-callback.ts";
import { splitOptions } from "../../callback/split-options.ts";

/** What is asked, and when; the schedule is every 20 % of the phase by default, with its start and end. */
export type PeriodicCapabilityOptions = CapabilityOptions & Partial<PeriodicOptions>;

const capabilityOptionNames = {
  questions: true,
  method: true,
  subsample: true,
  system: true,
  personas: true,
  shots: true,
} as const satisfies Record<keyof CapabilityOptions, true>;

/**
 * What the model still knows, measured while it is trained: `new PeriodicCapabilityCallback({ questions: "arc.jsonl" })`.
 *
 * @throws PeriodicEvalError `config` for a wrong option; a missing file is told of before step 1.
 */
export class PeriodicCapabilityCallback extends PeriodicCallback {
  constructor(options: PeriodicCapabilityOptions) {
    checkKeys("PeriodicCapabilityCallback", options, [
      ...Object.keys(capabilityOptionNames),
      ...periodicOptionNames,
    ]);
    const { periodic, own } = splitOptions(options);
    super(capabilityEvaluation(own), { schedule: [everyPercent(20)], id: "capability", ...periodic });
  }
}
