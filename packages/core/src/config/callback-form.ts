import * as z from "zod";
import type { AnyEvaluation } from "@periodic-eval/contracts";
import { configError, isRecord, nearest, parseOptions, checked } from "@periodic-eval/contracts/options";
import { type PeriodicOptions, periodicShape } from "../callback/periodic-callback.ts";
import { everyPercent } from "../schedule/triggers.ts";
import { periodicEvalSchema } from "./config-schema.ts";
import type { OpenJudge } from "./block-judge.ts";
import { optionsIn, personasOf, placingItems, type BlockKeys } from "./from-block.ts";
import { holdsBlock, isParsedBlock, misspeltHolder, parseBlock, type ParsedBlock } from "./parse-config.ts";

/** The second argument of a callback that is constructed from a `periodic_eval` block. */
export interface CallbackBlockOptions {
  /** Selects the overrides of a phase. Required for a block with `phases`. */
  readonly phase?: string;
  /** Opens the judges of alignment and refusal before step 1. Default as in `buildPeriodicEval`. */
  readonly openJudge?: OpenJudge;
}

/** A callback class that takes its own options or a block. `O` are its options. */
export interface CallbackForm<O extends Partial<PeriodicOptions>> {
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
export function callbackParts<O extends Partial<PeriodicOptions>>(
  form: CallbackForm<O>,
  input: unknown,
  options: CallbackBlockOptions = {},
): CallbackParts {
  if (!isParsedBlock(input) && !isBlock(form, input)) return partsOf(form, input as O);
  const block = isParsedBlock(input) ? input : parseBlock(input, options.phase ?? null);
  personasOf(block);
  const fromBlock = block.config.enabled ? form.fromBlock(block, options) : null;
  if (fromBlock === null) return [null, { schedule: [], id: form.id }];
  const [evaluation, periodic] = checked(optionsIn(block, form.keys), () => partsOf(form, fromBlock));
  const placed = placingItems(evaluation, block, form.keys);
  return [form.isOptional?.(block) === true ? Object.assign(placed, { optional: true }) : placed, periodic];
}

function partsOf<O extends Partial<PeriodicOptions>>(
  form: CallbackForm<O>,
  options: O,
): readonly [AnyEvaluation, PeriodicOptions] {
  const { periodic, evaluation } = splitOptions(`${form.name} options`, form.shape, options);
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

/** Whether the `schedule` is a trigger that lacks its array. */
const isTrigger = (schedule: object) => ["every", "at", "times"].some((key) => key in schedule);

/** Finding the nearest key of each unknown one takes time. */
const maxGuesses = 50;
const blockKeys = Object.keys(periodicEvalSchema.shape);

type NamesOfOptions = Pick<CallbackForm<Partial<PeriodicOptions>>, "name" | "shape" | "keys">;

function isBlock({ name, shape, keys }: NamesOfOptions, input: unknown): boolean {
  if (!isRecord(input)) return false;
  if (holdsBlock(input) || misspeltHolder(input) !== null) return true;
  const optionNames = [...Object.keys(shape), ...Object.keys(periodicShape)];
  const written = Object.keys(input).filter((key) => input[key] !== undefined);
  const isOfBlock = (key: string) =>
    key === "schedule"
      ? isRecord(input[key]) && !isTrigger(input[key])
      : blockKeys.includes(key) && !optionNames.includes(key);
  const isOption = (key: string) =>
    key === "schedule" ? Array.isArray(input[key]) : optionNames.includes(key) && !blockKeys.includes(key);
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
