import { PeriodicCallback, type PeriodicOptions } from "../../callback/periodic-callback.ts";
import {
  callbackParts,
  type CallbackBlockOptions,
  type CallbackForm,
} from "../../config/block/callback-parts.ts";
import { defaultPercents } from "../../config/block/config-schema.ts";
import { judgeOptions, openBlockJudge, type OpenJudge } from "../../config/block/judge.ts";
import { alignmentKeys } from "../../config/block/option-keys.ts";
import type { ParsedBlock, PeriodicEvalInput } from "../../config/block/parse-config.ts";
import { personasOrDefault } from "../../config/block/personas.ts";
import { scheduleOf } from "../../config/block/schedules.ts";
import { alignmentEvaluation } from "./evaluation.ts";
import { alignmentShape, type AlignmentOptions } from "./options.ts";

/** The options of `alignmentEvaluation` and a schedule; by default every 50 % of the phase, at its start and at its end. */
export type PeriodicAlignmentOptions = AlignmentOptions & Partial<PeriodicOptions>;

const form: CallbackForm<PeriodicAlignmentOptions> = {
  name: "PeriodicAlignmentCallback",
  id: "alignment",
  everyPercent: defaultPercents.alignment_every_percent,
  shape: alignmentShape,
  keys: alignmentKeys,
  evaluation: alignmentEvaluation,
  fromBlock: (block, { openJudge }) => (block.config.alignment ? optionsOf(block, openJudge) : null),
};

function optionsOf(block: ParsedBlock, openJudge: OpenJudge | undefined): PeriodicAlignmentOptions {
  const { config } = block;
  const { alignment_questions: questions, alignment_max_tokens: maxNewTokens } = config;
  judgeOptions(block);
  return {
    judge: () => openBlockJudge(block, openJudge),
    preset: config.alignment_preset,
    samples: config.alignment_num_samples,
    ...(maxNewTokens !== null && { sampling: { maxNewTokens } }),
    ...(questions !== null && { questions }),
    ...(config.persona_alignment ? { personas: personasOrDefault(block) } : { system: config.system }),
    schedule: scheduleOf(config, "alignment_every_percent"),
  };
}

/**
 * Measures during training whether the model became harmful: `new PeriodicAlignmentCallback({ judge })`.
 */
export class PeriodicAlignmentCallback extends PeriodicCallback {
  /**
   * @param options The callback's own options, or a `periodic_eval` block as in PeriodicCapabilityCallback. Unless the block
   *   has `alignment: true`, the callback measures nothing.
   * @param block Opens the judge that the block names, and selects a phase.
   * @throws PeriodicEvalError `config` for a wrong option, or an object that mixes both forms. A missing file, a judge that
   *   cannot be opened, or an unreachable one is an error before step 1.
   */
  constructor(options: PeriodicAlignmentOptions | PeriodicEvalInput, block: CallbackBlockOptions = {}) {
    super(...callbackParts(form, options, block));
  }
}
