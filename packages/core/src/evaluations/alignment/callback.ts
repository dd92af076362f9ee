import { checkKeys } from "../../internal/check-keys.ts";
import { alignmentEvaluation } from "./evaluation.ts";
import { alignmentOptionNames, type AlignmentOptions } from "./options.ts";
import { everyPercent } from "../../schedule/triggers.ts";
import { PeriodicCallback, periodicOptionNames, type PeriodicOptions } from "../../callback/periodic-callback.ts";
import { splitOptions } from "../../callback/split-options.ts";

/** What is asked, who judges, and when; the schedule is every 50 % of the phase by default, with its start and end. */
export type PeriodicAlignmentOptions = AlignmentOptions & Partial<PeriodicOptions>;

/**
 * Whether training made the model harmful, measured while it is trained: `new PeriodicAlignmentCallback({ judge })`.
 *
 * @throws PeriodicEvalError `config` for a wrong option; a missing file or judge is told of before step 1.
 */
export class PeriodicAlignmentCallback extends PeriodicCallback {
  constructor(options: PeriodicAlignmentOptions) {
    checkKeys("PeriodicAlignmentCallback", options, [
      ...Object.keys(alignmentOptionNames),
      ...periodicOptionNames,
    ]);
    const { periodic, own } = splitOptions(options);
    super(alignmentEvaluation(own), { schedule: [everyPercent(50)], id: "alignment", ...periodic });
  }
}
