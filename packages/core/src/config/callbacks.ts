import * as z from "zod";
import type { AnyEvaluation, CallbackContext, Json, Snapshot } from "@periodic-eval/contracts";
import {
  configError,
  isRecord,
  nearest,
  parseOptions,
  checked,
  errorMessage,
} from "@periodic-eval/contracts/options";
import { PeriodicCallback, type PeriodicOptions, periodicShape } from "../callback/periodic-callback.ts";
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
import { traitsEvaluation, traitsShape, type TraitsOptions } from "../evaluations/traits/evaluation.ts";
import type { TraitDirections } from "../evaluations/traits/directions.ts";
import { atEnd, atStart, everyPercent, isEdge } from "../schedule/triggers.ts";
import { defaultPercents, klSourcesOf, periodicEvalSchema } from "./config-schema.ts";
import {
  alignmentOptionsOf,
  forgettingKeys,
  forgettingOptionsOf,
  refusalKeys,
  refusalOptionsOf,
  sycophancyKeys,
  sycophancyOptionsOf,
  traitsKeys,
  traitsOptionsOf,
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
  type OpenJudge,
  optionsIn,
  placingItems,
  type BlockKeys,
  personasOf,
} from "./from-block.ts";
import {
  blockName,
  type ParsedBlock,
  type PeriodicEvalInput,
  holdsBlock,
  isParsedBlock,
  misspeltHolder,
  parseBlock,
} from "./parse-config.ts";

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
  fromBlock: refusalOptionsOf,
};

/**
 * Measures during training what the model refuses: `new PeriodicRefusalCallback()` asks XSTest,
 * `new PeriodicRefusalCallback({ questions: "prompts.csv" })` the prompts of a file.
 */
export class PeriodicRefusalCallback extends PeriodicCallback {
  /**
   * @param options The callback's own options, or a `periodic_eval` block as in PeriodicCapabilityCallback. Without `refusal` in the
   *   block the callback measures nothing.
   * @throws PeriodicEvalError `config` for a wrong option, or an object that mixes both forms. Prompts that cannot be read are an
   *   error before step 1.
   */
  constructor(options: PeriodicRefusalOptions | PeriodicEvalInput = {}, block: PhaseOf = {}) {
    super(...callbackParts(refusal, options, block));
  }
}

/** The options of `traitsEvaluation` and a schedule; by default every 5 % of the phase, at its start and at its end. */
export type PeriodicTraitsOptions = TraitsOptions & Partial<PeriodicOptions>;

const traits: CallbackForm<PeriodicTraitsOptions> = {
  name: "PeriodicTraitsCallback",
  id: "traits",
  everyPercent: 5,
  shape: traitsShape,
  keys: traitsKeys,
  evaluation: traitsEvaluation,
  fromBlock: traitsOptionsOf,
};

/**
 * Experimental. Measures during training how far the hidden states of neutral prompts move along the directions of traits:
 * `new PeriodicTraitsCallback()`. A second measurement, `<id>-directions`, stores the directions at the start, and at the end says
 * whether they are stale. A resumed run continues with the stored ones.
 */
export class PeriodicTraitsCallback extends PeriodicCallback {
  override readonly asks: readonly AnyEvaluation[];
  readonly #directions: TraitDirections | null;
  /** Whether the measurement that stores the directions is requested, and traits wait for it. */
  #isStarting = false;

  /**
   * @param options The callback's own options, or a `periodic_eval` block as in PeriodicCapabilityCallback. Without `traits` in the
   *   block the callback measures nothing.
   * @throws PeriodicEvalError `config` for a wrong option, an object that mixes both forms, or `atStart: false`: the
   *   directions are those of the start. A model without the ability `hiddenStates` is an error before step 1.
   */
  constructor(options: PeriodicTraitsOptions | PeriodicEvalInput = {}, block: PhaseOf = {}) {
    const [evaluation, periodic] = callbackParts(traits, options, block);
    super(evaluation, periodic);
    this.#directions = (evaluation as { readonly directions?: TraitDirections } | null)?.directions ?? null;
    this.asks = this.#directions === null ? [] : [evaluation!, this.#directions.evaluation];
    if (evaluation !== null && !this.triggers.some((trigger) => isEdge(trigger, "start")))
      throw configError({
        where: "PeriodicTraitsCallback options",
        path: ["atStart"],
        value: false,
        expected: "true: directions are extracted from the untrained model",
        fix: "Leave `atStart` out.",
      });
  }

  override async onTrainBegin(context: CallbackContext): Promise<void> {
    const directions = this.#directions;
    if (directions === null) return;
    if (context.previous !== null) {
      await this.#load(directions, context, 0);
      return super.onTrainBegin(context);
    }
    directions.forget();
    this.#isStarting = true;
    this.#requestDirections(context, "start");
  }

  /** Requests the start of traits when the directions are stored: their provenance names them. */
  async onSnapshot(context: CallbackContext, { id, step, phase }: Snapshot): Promise<void> {
    if (!this.#isStarting || id !== `${this.id}-directions` || phase !== context.phase) return;
    this.#isStarting = false;
    await this.#load(this.#directions!, context, step);
    await super.onTrainBegin({ ...context, previous: null });
  }

  override onTrainEnd(context: CallbackContext): void {
    if (this.#directions !== null && context.progress.ended) this.#requestDirections(context, "end");
    super.onTrainEnd(context);
  }

  /** Returns the directions, so that a resumed run has them before its first check. */
  state(): Json {
    return this.#directions?.toJson() ?? null;
  }

  restore(state: Json): void {
    this.#directions?.load(state);
  }

  #requestDirections({ measure }: CallbackContext, edge: "start" | "end"): void {
    const { evaluation } = this.#directions!;
    const crossed = [edge === "start" ? { trigger: atStart(), at: 0 } : { trigger: atEnd(), at: null }];
    measure({ id: `${this.id}-directions`, evaluation, crossed, on: this.on });
  }

  /** Loads the directions from the rows of the measurement that stored them, unless the checkpoint had them. */
  async #load(directions: TraitDirections, { rows, phase }: CallbackContext, step: number): Promise<void> {
    directions.refuseTrained("they were not stored");
    if (directions.areKnown) return;
    try {
      directions.loadRows(await rows({ phase, id: `${this.id}-directions`, step }));
    } catch (error) {
      directions.refuseTrained(errorMessage(error));
    }
  }
}

/** The second argument of a callback that is constructed from a `periodic_eval` block. */
export interface CallbackBlockOptions {
  /** Selects the overrides of a phase. Required for a block with `phases`. */
  readonly phase?: string;
  /** Opens the judge of alignment before step 1. Default as in `buildPeriodicEval`. */
  readonly openJudge?: OpenJudge;
}

/** A callback class that takes its own options or a block. `O` are its options, `E` those of its evaluation. */
interface CallbackForm<O extends Partial<PeriodicOptions>> {
  /** Name of the class. */
  readonly name: string;
  /** Schemas of the evaluation's options. */
  readonly shape: z.ZodRawShape;
  /** The keys of a block that set options. */
  readonly keys: BlockKeys;
  /** Default id, and the id of a callback that measures nothing. */
  readonly id: string;
  /** Returns the default id where it depends on the options. */
  readonly idOf?: (options: Omit<O, keyof PeriodicOptions>) => string;
  /** Percent of the phase between measurements without a schedule. */
  readonly everyPercent: number;
  /** Returns the options that a block sets; null if the block does not measure this. */
  readonly fromBlock: (block: ParsedBlock, options: CallbackBlockOptions) => O | null;
  readonly evaluation: (options: Omit<O, keyof PeriodicOptions>) => AnyEvaluation;
  /** Whether a block measures this only because it is on by default. */
  readonly isOptional?: (block: ParsedBlock) => boolean;
}

/** The arguments of PeriodicCallback's constructor. */
type CallbackParts = readonly [evaluation: AnyEvaluation | null, options: PeriodicOptions];

/**
 * Returns the evaluation and the options of a callback from its own options or from a `periodic_eval` block. The evaluation is
 * null if the block does not measure it.
 *
 * An object is a block if it holds one (`periodic_eval`, `eval.periodic_eval`), has a key that only blocks have, or has a
 * `schedule` that is an object. Every other object holds the callback's own options.
 *
 * @throws PeriodicEvalError `config` for a wrong or unknown option or key, or an object that mixes both forms.
 */
function callbackParts<O extends Partial<PeriodicOptions>>(
  form: CallbackForm<O>,
  given: unknown,
  options: CallbackBlockOptions = {},
): CallbackParts {
  if (!isParsedBlock(given) && !isBlock(form, given)) return partsOf(form, given as O);
  const block = isParsedBlock(given) ? given : parseBlock(given, options.phase ?? null);
  personasOf(block);
  const own = block.config.enabled ? form.fromBlock(block, options) : null;
  if (own === null) return [null, { schedule: [], id: form.id }];
  const [evaluation, periodic] = checked(optionsIn(block, form.keys), () => partsOf(form, own));
  const placed = placingItems(evaluation, block, form.keys);
  return [form.isOptional?.(block) === true ? Object.assign(placed, { optional: true }) : placed, periodic];
}

function partsOf<O extends Partial<PeriodicOptions>>(
  form: CallbackForm<O>,
  own: O,
): readonly [AnyEvaluation, PeriodicOptions] {
  const { periodic, evaluation } = splitOptions(`${form.name} options`, form.shape, own);
  const defaults = {
    schedule: [everyPercent(form.everyPercent)],
    id: form.idOf?.(evaluation) ?? form.id,
  };
  return [form.evaluation(evaluation), { ...defaults, ...periodic }];
}

/**
 * Checks the options of a callback that also takes the options of its evaluation, and splits them.
 *
 * @param where Names the options in errors: `PeriodicCapabilityCallback options`.
 * @param shape The schemas of the evaluation's options.
 * @throws PeriodicEvalError `config` for a wrong or unknown option.
 */
function splitOptions<T extends Partial<PeriodicOptions>>(
  where: string,
  shape: z.ZodRawShape,
  options: T,
): { readonly periodic: Partial<PeriodicOptions>; readonly evaluation: Omit<T, keyof PeriodicOptions> } {
  parseOptions(where, z.strictObject({ ...shape, ...z.object(periodicShape).partial().shape }), options);
  const defined = Object.entries(options).filter(([, value]) => value !== undefined);
  const pick = (isPeriodic: boolean) =>
    Object.fromEntries(defined.filter(([name]) => Object.hasOwn(periodicShape, name) === isPeriodic));
  return {
    periodic: pick(true),
    // TypeScript cannot follow the split by name.
    evaluation: pick(false) as Omit<T, keyof PeriodicOptions>,
  };
}

/** Finding the nearest key of each unknown one takes time. */
const maxGuesses = 50;
const blockKeys = Object.keys(periodicEvalSchema.shape);

type NamesOfOptions = Pick<CallbackForm<Partial<PeriodicOptions>>, "name" | "shape" | "keys">;

function isBlock({ name, shape, keys }: NamesOfOptions, given: unknown): boolean {
  if (!isRecord(given)) return false;
  if (holdsBlock(given) || misspeltHolder(given) !== null) return true;
  const optionNames = [...Object.keys(shape), ...Object.keys(periodicShape)];
  const written = Object.keys(given).filter((key) => given[key] !== undefined);
  const isOfBlock = (key: string) =>
    key === "schedule" ? isRecord(given[key]) : blockKeys.includes(key) && !optionNames.includes(key);
  const isOption = (key: string) =>
    key === "schedule" ? Array.isArray(given[key]) : optionNames.includes(key) && !blockKeys.includes(key);
  const ofBlock = written.find(isOfBlock);
  const option = written.find(isOption);
  if (ofBlock !== undefined && option !== undefined) throw mixedError(name, keys, option, ofBlock);
  if (ofBlock !== undefined || option !== undefined) return ofBlock !== undefined;
  // Only keys that both forms have, or unknown ones: then the nearest known key says which form was meant.
  const guesses = written
    .filter((key) => !optionNames.includes(key) && !blockKeys.includes(key))
    .slice(0, maxGuesses)
    .map((key) => nearest(key, [...optionNames, ...blockKeys]));
  return guesses.some((guess) => guess !== null && !optionNames.includes(guess));
}

function mixedError(name: string, keys: BlockKeys, option: string, ofBlock: string) {
  const key = keys.options[option];
  const sameInBlock =
    option === "schedule"
      ? "Write the schedule as in a block: { every_steps: 50 }."
      : key === undefined
        ? `Remove "${option}", which blocks do not have, or pass only the callback's own options.`
        : `Write "${key}", which is the block's key for "${option}".`;
  return configError({
    where: `${name} options`,
    path: [option],
    got: `the option "${option}" together with "${ofBlock}", a key of a periodic_eval block`,
    expected: "the callback's own options, or a periodic_eval block",
    fix: sameInBlock,
  });
}
