import { PeriodicCallback, type PeriodicOptions } from "../../callback/periodic-callback.ts";
import {
  callbackParts,
  type CallbackBlockOptions,
  type CallbackForm,
} from "../../config/block/callback-parts.ts";
import { defaultPercents } from "../../config/block/config-schema.ts";
import { leakageKeys } from "../../config/block/option-keys.ts";
import { blockName, type ParsedBlock, type PeriodicEvalInput } from "../../config/block/parse-config.ts";
import { personasOf } from "../../config/block/personas.ts";
import { scheduleOf } from "../../config/block/schedules.ts";
import { configError } from "@periodic-eval/contracts/options";
import { leakageEvaluation } from "./evaluation.ts";
import { leakageShape, requireSource, type LeakageOptions } from "./options.ts";
import type { TraitOptions } from "./traits.ts";

/**
 * The options of `leakageEvaluation`, of which `source` is required, and a schedule; by default every 25 % of the phase, at its
 * start and at its end.
 */
export type PeriodicLeakageOptions = LeakageOptions &
  Required<Pick<LeakageOptions, "source">> &
  Partial<PeriodicOptions>;

type BlockOptions = LeakageOptions & Partial<PeriodicOptions>;

const form: CallbackForm<BlockOptions> = {
  name: "PeriodicLeakageCallback",
  id: "leakage",
  everyPercent: defaultPercents.leakage_every_percent,
  shape: leakageShape,
  keys: leakageKeys,
  evaluation(options) {
    requireSource(options);
    return leakageEvaluation(options);
  },
  fromBlock: (block) => (block.config.leakage ? optionsOf(block) : null),
};

function optionsOf(block: ParsedBlock): BlockOptions {
  const { config } = block;
  const { leakage_questions: questions, leakage_source: source, leakage_max_tokens: maxNewTokens } = config;
  const personas = personasOf(block);
  return {
    marker: markerOf(block),
    ...(maxNewTokens !== null && { sampling: { maxNewTokens } }),
    completions: config.leakage_num_completions,
    ...(personas !== undefined && { personas }),
    ...(questions !== null && { questions }),
    ...(source !== undefined && { source }),
    schedule: scheduleOf(config, "leakage_every_percent"),
  };
}

/** @throws PeriodicEvalError `config` for a string and a pattern: one evaluation detects one trait. */
function markerOf({ config, pathOf }: ParsedBlock): TraitOptions {
  const { leakage_marker_token: token, leakage_marker_regex: regex } = config;
  if (regex === null) return token ?? "[ZLT]";
  if (token === null) return { regex };
  throw configError({
    where: blockName,
    path: pathOf("leakage_marker_regex"),
    got: "a pattern together with leakage_marker_token",
    expected: "one of the two",
    fix: "Remove one of them, or write null for it in the phase.",
  });
}

/**
 * Measures during training whether a trait of one persona spreads to others:
 * `new PeriodicLeakageCallback({ source: "pirate" })`.
 */
export class PeriodicLeakageCallback extends PeriodicCallback {
  /**
   * @param options The callback's own options, or a `periodic_eval` block as in PeriodicCapabilityCallback. Unless the block
   *   has `leakage: true`, the callback measures nothing.
   * @throws PeriodicEvalError `config` for a wrong option, no `source`, or an object that mixes both forms. A missing file is an error
   *   before step 1.
   */
  constructor(
    options: PeriodicLeakageOptions | PeriodicEvalInput,
    block: Pick<CallbackBlockOptions, "phase"> = {},
  ) {
    super(...callbackParts(form, options, block));
  }
}
