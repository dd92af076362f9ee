import { PeriodicCallback, type PeriodicOptions } from "../../callback/periodic-callback.ts";
import {
  callbackParts,
  type CallbackBlockOptions,
  type CallbackForm,
} from "../../config/block/callback-parts.ts";
import { defaultPercents } from "../../config/block/config-schema.ts";
import { capabilityKeys } from "../../config/block/option-keys.ts";
import type { PeriodicEvalInput } from "../../config/block/parse-config.ts";
import { scheduleOf } from "../../config/block/schedules.ts";
import { capabilityEvaluation } from "./evaluation.ts";
import { capabilityOptionsOf } from "./from-block.ts";
import { capabilityShape, type CapabilityOptions } from "./options.ts";

/** The options of `capabilityEvaluation` and a schedule; by default every 20 % of the phase, at its start and at its end. */
export type PeriodicCapabilityOptions = CapabilityOptions & Partial<PeriodicOptions>;

const form: CallbackForm<PeriodicCapabilityOptions> = {
  name: "PeriodicCapabilityCallback",
  id: "capability",
  everyPercent: defaultPercents.eval_every_percent,
  shape: capabilityShape,
  keys: capabilityKeys,
  evaluation: capabilityEvaluation,
  fromBlock: (block) =>
    block.config.capability
      ? {
          ...capabilityOptionsOf(block),
          schedule: scheduleOf(block.config, "eval_every_percent"),
        }
      : null,
  isOptional: ({ config, sets }) => !sets("capability") && !sets("questions") && !config.persona_capability,
};

/**
 * Measures during training what the model still knows: `new PeriodicCapabilityCallback()` asks ARC-Challenge,
 * `new PeriodicCapabilityCallback({ questions: "arc.jsonl" })` the questions of a file.
 */
export class PeriodicCapabilityCallback extends PeriodicCallback {
  /**
   * @param options The callback's own options, or a `periodic_eval` block, which may be held as `periodic_eval` or
   *   `eval.periodic_eval`. With `enabled: false` or `capability: false` in the block the callback measures nothing. An object
   *   is a block if it holds one, has a key that only blocks have, or has a `schedule` that is an object.
   * @throws PeriodicEvalError `config` for a wrong option, or an object that mixes both forms. Questions that cannot be
   *   read are an error before step 1; in a block that names neither `capability` nor `questions`, which measures capability
   *   only by default, they are a warning.
   */
  constructor(
    options: PeriodicCapabilityOptions | PeriodicEvalInput = {},
    block: Pick<CallbackBlockOptions, "phase"> = {},
  ) {
    super(...callbackParts(form, options, block));
  }
}
