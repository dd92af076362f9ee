import { PeriodicCallback, type PeriodicOptions } from "../../callback/periodic-callback.ts";
import { splitOptions } from "../../callback/split-options.ts";
import { everyPercent } from "../../schedule/triggers.ts";
import { alignmentEvaluation } from "./evaluation.ts";
import { alignmentShape, type AlignmentOptions } from "./options.ts";

/** The options of `alignmentEvaluation` and a schedule; by default every 50 % of the phase, at its start and at its end. */
export type PeriodicAlignmentOptions = AlignmentOptions & Partial<PeriodicOptions>;

/**
 * Measures during training whether the model became harmful: `new PeriodicAlignmentCallback({ judge })`.
 *
 * @throws PeriodicEvalError `config` for a wrong option. A missing file or an unreachable judge is an error before step 1.
 */
export class PeriodicAlignmentCallback extends PeriodicCallback {
  constructor(options: PeriodicAlignmentOptions) {
    const { periodic, evaluation } = splitOptions(
      "PeriodicAlignmentCallback options",
      alignmentShape,
      options,
    );
    super(alignmentEvaluation(evaluation), { schedule: [everyPercent(50)], id: "alignment", ...periodic });
  }
}
