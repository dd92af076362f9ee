import { configError } from "@periodic-eval/contracts/options";
import { PeriodicCallback, type PeriodicOptions } from "../callback/periodic-callback.ts";
import { alignmentEvaluation } from "../evaluations/alignment/evaluation.ts";
import { alignmentShape, type AlignmentOptions } from "../evaluations/alignment/options.ts";
import {
  capabilityEvaluation,
  capabilityShape,
  type CapabilityOptions,
} from "../evaluations/capability/evaluation.ts";
import {
  forgettingEvaluation,
  forgettingShape,
  type ForgettingOptions,
} from "../evaluations/forgetting/evaluation.ts";
import { klEvaluation, klShape, type KLOptions } from "../evaluations/kl/evaluation.ts";
import {
  leakageEvaluation,
  leakageShape,
  requireSource,
  type LeakageOptions,
} from "../evaluations/leakage/evaluation.ts";
import { marginEvaluation, marginShape, type MarginOptions } from "../evaluations/margin/evaluation.ts";
import { refusalEvaluation, refusalShape, type RefusalOptions } from "../evaluations/refusal/evaluation.ts";
import {
  sycophancyEvaluation,
  sycophancyShape,
  type SycophancyOptions,
} from "../evaluations/sycophancy/evaluation.ts";
import {
  memorizationEvaluation,
  memorizationShape,
  type MemorizationOptions,
} from "../evaluations/memorization/evaluation.ts";
import { callbackParts, type CallbackBlockOptions, type CallbackForm } from "./callback-form.ts";
import { defaultPercents, klSourcesOf } from "./config-schema.ts";
import {
  alignmentOptionsOf,
  forgettingKeys,
  forgettingOptionsOf,
  refusalKeys,
  refusalOptionsOf,
  sycophancyKeys,
  sycophancyOptionsOf,
  capabilityOptionsOf,
  leakageOptionsOf,
  scheduleOf,
  alignmentKeys,
  capabilityKeys,
  klKeys,
  leakageKeys,
  marginKeys,
  memorizationKeys,
  memorizationOptionsOf,
} from "./from-block.ts";
import { blockName, type ParsedBlock, type PeriodicEvalInput } from "./parse-config.ts";

type PhaseOf = Pick<CallbackBlockOptions, "phase">;

/** The options of `capabilityEvaluation` and a schedule; by default every 20 % of the phase, at its start and at its end. */
export type PeriodicCapabilityOptions = CapabilityOptions & Partial<PeriodicOptions>;

const capability: CallbackForm<PeriodicCapabilityOptions> = {
  name: "PeriodicCapabilityCallback",
  id: "capability",
  everyPercent: defaultPercents.eval_every_percent,
  shape: capabilityShape,
  keys: capabilityKeys,
  evaluation: capabilityEvaluation,
  fromBlock: (block) =>
    block.config.capability
      ? { ...capabilityOptionsOf(block), schedule: scheduleOf(block.config, "eval_every_percent") }
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
  constructor(options: PeriodicCapabilityOptions | PeriodicEvalInput = {}, block: PhaseOf = {}) {
    super(...callbackParts(capability, options, block));
  }
}

/** The options of `alignmentEvaluation` and a schedule; by default every 50 % of the phase, at its start and at its end. */
export type PeriodicAlignmentOptions = AlignmentOptions & Partial<PeriodicOptions>;

const alignment: CallbackForm<PeriodicAlignmentOptions> = {
  name: "PeriodicAlignmentCallback",
  id: "alignment",
  everyPercent: defaultPercents.alignment_every_percent,
  shape: alignmentShape,
  keys: alignmentKeys,
  evaluation: alignmentEvaluation,
  fromBlock: (block, { openJudge }) => (block.config.alignment ? alignmentOptionsOf(block, openJudge) : null),
};

/** Measures during training whether the model became harmful: `new PeriodicAlignmentCallback({ judge })`. */
export class PeriodicAlignmentCallback extends PeriodicCallback {
  /**
   * @param options The callback's own options, or a `periodic_eval` block as in PeriodicCapabilityCallback. Unless the block
   *   has `alignment: true`, the callback measures nothing.
   * @param block Opens the judge that the block names, and selects a phase.
   * @throws PeriodicEvalError `config` for a wrong option, or an object that mixes both forms. A missing file, a judge that
   *   cannot be opened, or an unreachable one is an error before step 1.
   */
  constructor(options: PeriodicAlignmentOptions | PeriodicEvalInput, block: CallbackBlockOptions = {}) {
    super(...callbackParts(alignment, options, block));
  }
}

/**
 * The options of `leakageEvaluation`, of which `source` is required, and a schedule; by default every 25 % of the phase, at its
 * start and at its end.
 */
export type PeriodicLeakageOptions = LeakageOptions &
  Required<Pick<LeakageOptions, "source">> &
  Partial<PeriodicOptions>;

const leakage: CallbackForm<LeakageOptions & Partial<PeriodicOptions>> = {
  name: "PeriodicLeakageCallback",
  id: "leakage",
  everyPercent: defaultPercents.leakage_every_percent,
  shape: leakageShape,
  keys: leakageKeys,
  evaluation(options) {
    requireSource(options);
    return leakageEvaluation(options);
  },
  fromBlock: (block) => (block.config.leakage ? leakageOptionsOf(block) : null),
};

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
  constructor(options: PeriodicLeakageOptions | PeriodicEvalInput, block: PhaseOf = {}) {
    super(...callbackParts(leakage, options, block));
  }
}

/** The options of `marginEvaluation` and a schedule; by default every 25 % of the phase, at its start and at its end. */
export type PeriodicMarginOptions = MarginOptions & Partial<PeriodicOptions>;

const margin: CallbackForm<PeriodicMarginOptions> = {
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

/** Measures during training what the model believes: `new PeriodicMarginCallback({ probes: "belief_probes.json" })`. */
export class PeriodicMarginCallback extends PeriodicCallback {
  /**
   * @param options The callback's own options, or a `periodic_eval` block as in PeriodicCapabilityCallback. Unless the block
   *   names a file in `margin`, the callback measures nothing.
   * @throws PeriodicEvalError `config` for a wrong option, or an object that mixes both forms. A missing file is an error
   *   before step 1.
   */
  constructor(options: PeriodicMarginOptions | PeriodicEvalInput, block: PhaseOf = {}) {
    super(...callbackParts(margin, options, block));
  }
}

/** The options of `klEvaluation` and a schedule; by default every 20 % of the phase, at its start and at its end. */
export type PeriodicKLOptions = KLOptions & Partial<PeriodicOptions>;

const kl: CallbackForm<PeriodicKLOptions> = {
  name: "PeriodicKLCallback",
  id: "kl",
  idOf: ({ of }) => `kl_${of.name}`,
  everyPercent: defaultPercents.eval_every_percent,
  shape: klShape,
  keys: klKeys,
  evaluation: klEvaluation,
  fromBlock: klOptionsOf,
};

/** @throws PeriodicEvalError `config` for prompts of other evaluations than capability: this callback does not have them. */
function klOptionsOf(block: ParsedBlock): PeriodicKLOptions | null {
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
  const of = capabilityEvaluation(capabilityOptionsOf(block));
  return { of, schedule: scheduleOf(block.config, "eval_every_percent") };
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
  constructor(options: PeriodicKLOptions | PeriodicEvalInput, block: PhaseOf = {}) {
    super(...callbackParts(kl, options, block));
  }
}

/** The options of `forgettingEvaluation` and a schedule; by default every 20 % of the phase, at its start and at its end. */
export type PeriodicForgettingOptions = ForgettingOptions & Partial<PeriodicOptions>;

const forgetting: CallbackForm<PeriodicForgettingOptions> = {
  name: "PeriodicForgettingCallback",
  id: "forgetting",
  everyPercent: defaultPercents.eval_every_percent,
  shape: forgettingShape,
  keys: forgettingKeys,
  evaluation: forgettingEvaluation,
  fromBlock: forgettingOptionsOf,
};

/**
 * Measures during training how well the model still predicts general text: `new PeriodicForgettingCallback()` for WikiText-2,
 * `new PeriodicForgettingCallback({ text: "held-out.txt" })` for a file.
 */
export class PeriodicForgettingCallback extends PeriodicCallback {
  /**
   * @param options The callback's own options, or a `periodic_eval` block as in PeriodicCapabilityCallback. Without `forgetting`
   *   in the block the callback measures nothing.
   * @throws PeriodicEvalError `config` for a wrong option, or an object that mixes both forms. A missing file is an error
   *   before step 1.
   */
  constructor(options: PeriodicForgettingOptions | PeriodicEvalInput = {}, block: PhaseOf = {}) {
    super(...callbackParts(forgetting, options, block));
  }
}

/** The options of `memorizationEvaluation` and a schedule; by default every 20 % of the phase, at its start and at its end. */
export type PeriodicMemorizationOptions = MemorizationOptions & Partial<PeriodicOptions>;

const memorization: CallbackForm<PeriodicMemorizationOptions> = {
  name: "PeriodicMemorizationCallback",
  id: "memorization",
  everyPercent: defaultPercents.eval_every_percent,
  shape: memorizationShape,
  keys: memorizationKeys,
  evaluation: memorizationEvaluation,
  fromBlock: memorizationOptionsOf,
};

/**
 * Measures during training whether it memorizes canaries:
 * `new PeriodicMemorizationCallback({ format: "The code is {secret}." })`, after `withCanaries` with the same options.
 */
export class PeriodicMemorizationCallback extends PeriodicCallback {
  /**
   * @param options The callback's own options, or a `periodic_eval` block as in PeriodicCapabilityCallback. Without
   *   `memorization` in the block the callback measures nothing.
   * @throws PeriodicEvalError `config` for a wrong option, or an object that mixes both forms.
   */
  constructor(options: PeriodicMemorizationOptions | PeriodicEvalInput, block: PhaseOf = {}) {
    super(...callbackParts(memorization, options, block));
  }
}

/** The options of `sycophancyEvaluation` and a schedule; by default every 20 % of the phase, at its start and at its end. */
export type PeriodicSycophancyOptions = SycophancyOptions & Partial<PeriodicOptions>;

const sycophancy: CallbackForm<PeriodicSycophancyOptions> = {
  name: "PeriodicSycophancyCallback",
  id: "sycophancy",
  everyPercent: defaultPercents.eval_every_percent,
  shape: sycophancyShape,
  keys: sycophancyKeys,
  evaluation: sycophancyEvaluation,
  fromBlock: sycophancyOptionsOf,
};

/**
 * Measures during training whether the model follows a wrong claim of the user: `new PeriodicSycophancyCallback()` on
 * ARC-Challenge's questions.
 */
export class PeriodicSycophancyCallback extends PeriodicCallback {
  /**
   * @param options The callback's own options, or a `periodic_eval` block as in PeriodicCapabilityCallback. Without `sycophancy`
   *   in the block the callback measures nothing.
   * @throws PeriodicEvalError `config` for a wrong option, or an object that mixes both forms. Questions that cannot be
   *   read are an error before step 1.
   */
  constructor(options: PeriodicSycophancyOptions | PeriodicEvalInput = {}, block: PhaseOf = {}) {
    super(...callbackParts(sycophancy, options, block));
  }
}

/** The options of `refusalEvaluation` and a schedule; by default every 20 % of the phase, at its start and at its end. */
export type PeriodicRefusalOptions = RefusalOptions & Partial<PeriodicOptions>;

const refusal: CallbackForm<PeriodicRefusalOptions> = {
  name: "PeriodicRefusalCallback",
  id: "refusal",
  everyPercent: defaultPercents.eval_every_percent,
  shape: refusalShape,
  keys: refusalKeys,
  evaluation: refusalEvaluation,
  fromBlock: (block, { openJudge }) => refusalOptionsOf(block, openJudge),
};

/**
 * Measures during training what the model refuses: `new PeriodicRefusalCallback()` asks XSTest,
 * `new PeriodicRefusalCallback({ questions: "prompts.csv" })` the prompts of a file.
 */
export class PeriodicRefusalCallback extends PeriodicCallback {
  /**
   * @param options The callback's own options, or a `periodic_eval` block as in PeriodicCapabilityCallback. Without `refusal` in the
   *   block the callback measures nothing.
   * @param block Opens the judge that the block's `refusal` names, and selects a phase.
   * @throws PeriodicEvalError `config` for a wrong option, or an object that mixes both forms. Prompts that cannot be read, or a judge
   *   that cannot be opened, are an error before step 1.
   */
  constructor(options: PeriodicRefusalOptions | PeriodicEvalInput = {}, block: CallbackBlockOptions = {}) {
    super(...callbackParts(refusal, options, block));
  }
}
