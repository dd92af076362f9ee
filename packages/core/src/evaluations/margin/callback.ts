import { PeriodicCallback, type PeriodicOptions } from "../../callback/periodic-callback.ts";
import {
  callbackParts,
  type CallbackBlockOptions,
  type CallbackForm,
} from "../../config/block/callback-parts.ts";
import { marginKeys } from "../../config/block/option-keys.ts";
import type { PeriodicEvalInput } from "../../config/block/parse-config.ts";
import { scheduleOf } from "../../config/block/schedules.ts";
import { marginEvaluation } from "./evaluation.ts";
import { marginShape, type MarginOptions } from "./options.ts";

/** The options of `marginEvaluation` and a schedule; by default every 25 % of the phase, at its start and at its end. */
export type PeriodicMarginOptions = MarginOptions & Partial<PeriodicOptions>;

const form: CallbackForm<PeriodicMarginOptions> = {
  name: "PeriodicMarginCallback",
  id: "margin",
  everyPercent: 25,
  shape: marginShape,
  keys: marginKeys,
  evaluation: marginEvaluation,
  fromBlock: ({ config }) =>
    config.margin === null
      ? null
      : { probes: config.margin, schedule: scheduleOf(config, "eval_every_percent") },
};

/**
 * Measures during training what the model believes: `new PeriodicMarginCallback({ probes: "belief_probes.json" })`.
 */
export class PeriodicMarginCallback extends PeriodicCallback {
  /**
   * @param options The callback's own options, or a `periodic_eval` block as in PeriodicCapabilityCallback. Unless the block
   *   names a file in `margin`, the callback measures nothing.
   * @throws PeriodicEvalError `config` for a wrong option, or an object that mixes both forms. A missing file is an error
   *   before step 1.
   */
  constructor(
    options: PeriodicMarginOptions | PeriodicEvalInput,
    block: Pick<CallbackBlockOptions, "phase"> = {},
  ) {
    super(...callbackParts(form, options, block));
  }
}
