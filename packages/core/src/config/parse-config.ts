import * as z from "zod";
import type { Grader, ValuePath } from "@periodic-eval/contracts";
import { configError, isRecord, nearest, parseOptions } from "@periodic-eval/contracts/options";
import { periodicEvalSchema, type PeriodicEvalBlock, type PhaseEvalConfig } from "./config-schema.ts";

/** Names the block in errors; their `path` is within the block. */
export const blockName = "periodic_eval";

/** A `periodic_eval` block, or a configuration that holds it as `periodic_eval` or `eval.periodic_eval`. */
export type PeriodicEvalInput =
  | PeriodicEvalBlock
  | { readonly periodic_eval: PeriodicEvalBlock; readonly [key: string]: unknown }
  | { readonly eval: { readonly periodic_eval: PeriodicEvalBlock }; readonly [key: string]: unknown };

/** What a judge grades: alignment, alignment as the second of `judge_models`, or refusal. */
export type JudgeRole = "first" | "second" | "refusal";

/** Opens a judge of a block at its first use. */
export type JudgeOf = (role: JudgeRole) => Promise<Grader>;

export interface ParsedBlock {
  readonly config: PhaseEvalConfig;
  /** Returns where the block sets a key for this phase: `["phases", "em", "kl"]`, or `["kl"]`. */
  pathOf(key: keyof PhaseEvalConfig): ValuePath;
  /** Whether the block sets a key for this phase to another value than null. */
  sets(key: keyof PhaseEvalConfig): boolean;
  /** Opens the judges that the callbacks of `buildPeriodicEval` share. */
  readonly judgeOf?: JudgeOf;
}

/** Whether a callback is constructed by `buildPeriodicEval`, which has parsed the block. */
export const isParsedBlock = (value: unknown): value is ParsedBlock =>
  isRecord(value) && typeof value["pathOf"] === "function";

/**
 * Parses the `periodic_eval` block of a configuration for one phase. The configuration is the block itself, or holds it as
 * `periodic_eval` or `eval.periodic_eval`. `phases.em` in the block overrides the other keys in the phase `em`.
 *
 * @param phase Null if the phase is unknown: overrides of any phase are then an error.
 * @param runPhases All phases of the run, if known: overrides of any other phase are then an error.
 * @throws PeriodicEvalError `config` with the path of the wrong key within the block.
 */
export function parseBlock(
  config: unknown,
  phase: string | null,
  runPhases?: readonly string[],
): ParsedBlock {
  const written = blockOf(config);
  const { phases, ...base } = parseOptions(blockName, periodicEvalSchema, withDefaultsForNulls(written));
  refuseUnread(written as PeriodicEvalBlock);
  const isSet = (at: unknown, key: string) => isRecord(at) && at[key] !== undefined && at[key] !== null;
  if (phase === null) {
    const names = Object.keys(phases);
    // It is unknown whether they apply.
    if (names.length > 0)
      throw configError({
        where: blockName,
        path: ["phases"],
        got: `overrides of ${names.join(", ")}, and no phase`,
        expected: "the phase that the callback measures",
        fix: `Pass { phase: "${names[0]}" } as the second argument, or the block as \`periodicEval\` to the trainer.`,
      });
    return { config: base, pathOf: (key) => [key], sets: (key) => isSet(written, key) };
  }
  if (runPhases !== undefined) {
    requirePhase("phase", [], phase, runPhases);
    for (const name of Object.keys(phases)) requirePhase(blockName, ["phases", name], name, runPhases);
  }
  const overrides = Object.fromEntries(
    Object.entries(phases[phase] ?? {}).filter(([, value]) => value !== undefined),
  ) as Partial<PhaseEvalConfig>;
  return {
    config: { ...base, ...overrides },
    pathOf: (key) => (Object.hasOwn(overrides, key) ? ["phases", phase, key] : [key]),
    sets: (key) =>
      Object.hasOwn(overrides, key)
        ? isSet((written as PeriodicEvalBlock).phases![phase], key)
        : isSet(written, key),
  };
}

/** Keys that only one measurement reads. */
const readBy = { alignment: /^(alignment_|persona_alignment|judge_models?$)/, leakage: /^leakage_/ };

/** A block, or its overrides in a phase. */
interface Level {
  readonly path: ValuePath;
  readonly keys: Readonly<Record<string, unknown>> & {
    readonly escalate?: readonly { readonly run: readonly string[] }[] | null;
  };
}

/** @throws PeriodicEvalError `config` for a key that only alignment or leakage reads, in a block that has no key `alignment` or `leakage`. */
function refuseUnread(block: PeriodicEvalBlock): void {
  if (block.enabled === false) return;
  const phases = Object.entries(block.phases ?? {}).map(([name, keys]) => ({
    path: ["phases", name],
    keys: keys ?? {},
  }));
  const levels = [{ path: [], keys: block }, ...phases] as readonly Level[];
  for (const [on, ownKeys] of Object.entries(readBy)) {
    const isNamed = ({ keys }: Level) =>
      Object.hasOwn(keys, on) || keys.escalate?.some(({ run }) => run.includes(on)) === true;
    if (levels.some(isNamed)) continue;
    for (const { path, keys } of levels) {
      const key = Object.keys(keys).find(
        (name) => ownKeys.test(name) && ![undefined, null, false].includes(keys[name] as null),
      );
      if (key === undefined) continue;
      throw configError({
        where: blockName,
        path: [...path, key],
        got: "a key that no evaluation reads",
        expected: `${on}: true in the block`,
        fix:
          key === "judge_model" && keys["refusal"] !== undefined
            ? "Write refusal: { judge_model } for a judge of refusals."
            : `Write \`${on}: true\`, or \`${on}: false\` to keep ${key} for later.`,
      });
    }
  }
}

/** Returns a block in which null means the default, in a phase as well. */
function withDefaultsForNulls(block: unknown): unknown {
  if (!isRecord(block) || !isRecord(block["phases"])) return withoutNulls(periodicEvalSchema, block);
  const phases = Object.entries(block["phases"]).map(([name, overrides]) => [
    name,
    withDefaults(periodicEvalSchema.shape, overrides),
  ]);
  return withoutNulls(periodicEvalSchema, { ...block, phases: Object.fromEntries(phases) });
}

/**
 * Returns the `periodic_eval` block of a configuration for one phase, with its defaults.
 *
 * @param runPhases All phases of the run, if known: overrides of any other phase are then an error.
 * @throws PeriodicEvalError `config` naming the key or the phase, and the nearest right one if it is misspelt.
 */
export const periodicEvalConfig = (
  config: unknown,
  phase: string,
  runPhases?: readonly string[],
): PhaseEvalConfig => parseBlock(config, phase, runPhases).config;

function requirePhase(where: string, path: ValuePath, name: string, runPhases: readonly string[]): void {
  if (runPhases.includes(name)) return;
  const guess = nearest(name, runPhases);
  throw configError({
    where,
    path,
    value: name,
    expected: `a phase of the run: ${runPhases.map((phase) => `"${phase}"`).join(" or ")}`,
    fix:
      guess === null
        ? `List "${name}" among the phases of the run too, or remove its overrides.`
        : `Write "${guess}", or list all phases of the run.`,
  });
}

/** Whether a configuration holds the block as `periodic_eval` or `eval.periodic_eval`. */
export const holdsBlock = (config: unknown): boolean => holderOf(config) !== null;

/**
 * Returns the block. A configuration without the key `periodic_eval` is itself the block.
 *
 * @throws PeriodicEvalError `config` if the key is misspelt.
 */
function blockOf(config: unknown): unknown {
  const holder = holderOf(config);
  const block = holder === null ? config : holder["periodic_eval"];
  const misspelt = misspeltHolder(block);
  if (misspelt === null) return block;
  const { path, key } = misspelt;
  throw configError({
    where: blockName,
    path,
    got: `the unknown option "${path.at(-1)}"`,
    expected: "a periodic_eval block",
    fix: `Did you mean "${key}"?`,
  });
}

/** Returns the path of a misspelt `periodic_eval`, or of the `eval` around it, and the right key; null if nothing is misspelt. */
export function misspeltHolder(
  config: unknown,
): { readonly path: ValuePath; readonly key: "periodic_eval" | "eval" } | null {
  if (!isRecord(config)) return null;
  const known = [...Object.keys(periodicEvalSchema.shape), "periodic_eval", "eval"];
  for (const [key, value] of Object.entries(config)) {
    const isBlock = value === null || isRecord(value);
    if (!isBlock || (known.includes(key) && key !== "eval")) continue;
    const meant = nearest(key, known);
    if (meant === "periodic_eval") return { path: [key], key: meant };
    const inner = Object.keys(value ?? {}).find((name) => nearest(name, known) === "periodic_eval");
    if (meant !== "eval" || inner === undefined) continue;
    return key === "eval" ? { path: [key, inner], key: "periodic_eval" } : { path: [key], key: "eval" };
  }
  return null;
}

function holderOf(config: unknown): Readonly<Record<string, unknown>> | null {
  if (!isRecord(config)) return null;
  const holds = (value: unknown): value is Readonly<Record<string, unknown>> =>
    isRecord(value) && value["periodic_eval"] !== undefined;
  const outer = config["eval"];
  if (holds(outer) && holds(config))
    throw configError({
      where: blockName,
      path: ["periodic_eval"],
      got: "two blocks, periodic_eval and eval.periodic_eval",
      expected: "one block",
      fix: "Remove one of the two.",
    });
  return holds(outer) ? outer : holds(config) ? config : null;
}

/**
 * Returns a block without the keys that are null, which have their defaults. Where the schema accepts null, it stays: null is the
 * default there, or is documented as another value. So does the null of a required key, for the error.
 */
function withoutNulls(schema: z.ZodType, value: unknown): unknown {
  const inner = unwrapped(schema);
  if (!isRecord(value) || !(inner instanceof z.ZodObject || inner instanceof z.ZodRecord)) return value;
  const entries = Object.entries(value).flatMap(([key, entry]) => {
    const field = inner instanceof z.ZodObject ? (inner.shape as Shape)[key] : (inner.valueType as z.ZodType);
    if (field === undefined) return [[key, entry]];
    const isOptional = inner instanceof z.ZodRecord || field.safeParse(undefined).success;
    return entry === null && isOptional && !field.safeParse(null).success
      ? []
      : [[key, withoutNulls(field, entry)]];
  });
  return Object.fromEntries(entries);
}

/** Returns the overrides of a phase with the defaults in place of nulls: a phase sets back what the block sets. */
function withDefaults(shape: Shape, overrides: unknown): unknown {
  if (!isRecord(overrides)) return overrides;
  return Object.fromEntries(
    Object.entries(overrides).map(([key, override]) => [
      key,
      override === null && shape[key] !== undefined ? (shape[key].parse(undefined) ?? null) : override,
    ]),
  );
}

type Shape = Readonly<Record<string, z.ZodType>>;

function unwrapped(schema: z.ZodType): z.ZodType {
  const { innerType } = schema.def as { readonly innerType?: z.ZodType };
  return innerType === undefined ? schema : unwrapped(innerType);
}
