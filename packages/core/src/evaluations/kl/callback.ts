import { PeriodicCallback, type PeriodicOptions } from "../../callback/periodic-callback.ts";
import {
  callbackParts,
  type CallbackBlockOptions,
  type CallbackForm,
} from "../../config/block/callback-parts.ts";
import { defaultPercents, klSourcesOf } from "../../config/block/config-schema.ts";
import { klKeys } from "../../config/block/option-keys.ts";
import { blockName, type ParsedBlock, type PeriodicEvalInput } from "../../config/block/parse-config.ts";
import { scheduleOf } from "../../config/block/schedules.ts";
import { configError } from "@periodic-eval/contracts/options";
import { capabilityEvaluation } from "../capability/evaluation.ts";
import { capabilityOptionsOf } from "../capability/from-block.ts";
import { klEvaluation } from "./evaluation.ts";
import { klShape, type KLOptions } from "./options.ts";

/** The options of `klEvaluation` and a schedule; by default every 20 % of the phase, at its start and at its end. */
export type PeriodicKLOptions = KLOptions & Partial<PeriodicOptions>;

const form: CallbackForm<PeriodicKLOptions> = {
  name: "PeriodicKLCallback",
  id: "kl",
  idOf: ({ of }) => `kl_${of.name}`,
  everyPercent: defaultPercents.eval_every_percent,
  shape: klShape,
  keys: klKeys,
  evaluation: klEvaluation,
  fromBlock: optionsOf,
};

/** @throws PeriodicEvalError `config` for prompts of other evaluations than capability: this callback does not have them. */
function optionsOf(block: ParsedBlock): PeriodicKLOptions | null {
  const sources = klSourcesOf(block.config);
  if (sources.length === 0) return null;
  if (sources.length > 1 || sources[0] !== "capability")
    throw configError({
      where: blockName,
      path: block.pathOf("kl"),
      got: sources.join(", "),
      expected: "true or [capability], for a single callback",
      fix: "Pass the block as `periodicEval` to the trainer, or to buildPeriodicEval: both build one callback for each.",
    });
  return {
    of: capabilityEvaluation(capabilityOptionsOf(block)),
    schedule: scheduleOf(block.config, "eval_every_percent"),
  };
}

/**
 * Measures how far an adapter has moved the model, on the prompts of an evaluation:
 * `new PeriodicKLCallback({ of: capabilityEvaluation({ questions: "arc.jsonl" }) })`. Its id is then `kl_capability`.
 */
export class PeriodicKLCallback extends PeriodicCallback {
  /**
   * @param options The callback's own options, or a `periodic_eval` block as in PeriodicCapabilityCallback, with `kl: true`
   *   or `kl: [capability]`. Without `kl` in the block the callback measures nothing.
   * @throws PeriodicEvalError `config` for a wrong option, an object that mixes both forms, or an evaluation without
   *   `prompts`.
   */
  constructor(
    options: PeriodicKLOptions | PeriodicEvalInput,
    block: Pick<CallbackBlockOptions, "phase"> = {},
  ) {
    super(...callbackParts(form, options, block));
  }
}
