import { z } from "zod";
import { checkKeys } from "../internal/check-keys.ts";
import { quoteValue } from "../internal/quote-value.ts";
import { checkWord } from "../internal/check-word.ts";
import { PeriodicEvalError } from "../errors.ts";
import { describeZodIssue } from "../internal/describe-zod-issue.ts";
import { nearest } from "../internal/nearest.ts";
import { periodicEvalSchema, type PeriodicEvalConfig, type PhaseEvalConfig } from "./config-schema.ts";

/**
 * The `periodic_eval` block of a configuration: the block itself, or what holds it as `periodic_eval` or
 * `eval.periodic_eval`. `base.phases.em` overrides the rest in the phase `em`. Where the run's phases are told, overrides of
 * any other are refused.
 *
 * @throws PeriodicEvalError `config` naming the key or the phase, and the nearest right one where it is misspelt.
 */
export function periodicEvalConfig(
  config: unknown,
  phase: string,
  runPhases?: readonly string[],
): PhaseEvalConfig {
  const { phases, ...base } = parsed(blockOf(config));
  if (runPhases !== undefined) {
    checkWord("phase", phase, runPhases);
    for (const name of Object.keys(phases)) checkPhase(name, runPhases);
  }
  return { ...base, ...defined(phases[phase] ?? {}) };
}

/** Where in the block that stands which a phase has under a key: `periodic_eval.phases.em.evaluations`. */
export function placeOfKey(config: unknown, phase: string, key: keyof PhaseEvalConfig): string {
  const { phases } = parsed(blockOf(config));
  const own = (phases[phase] as Partial<PhaseEvalConfig> | undefined)?.[key];
  return `periodic_eval.${own === undefined ? "" : `phases.${phase}.`}${key}`;
}

function checkPhase(name: string, runPhases: readonly string[]): void {
  if (runPhases.includes(name)) return;
  const guess = nearest(name, runPhases);
  throw new PeriodicEvalError({
    code: "config",
    where: "periodic_eval.phases",
    got: quoteValue(name),
    expected: `a phase of the run: ${runPhases.map((one) => `"${one}"`).join(" or ")}`,
    fix: guess === null ? "Tell all phases of the run." : `Write "${guess}", or tell all phases of the run.`,
  });
}

/** The block within what holds it. A configuration that has none measures by the defaults. */
function blockOf(config: unknown): unknown {
  const within = (holder: unknown, key: string) =>
    typeof holder === "object" && holder !== null && key in holder
      ? (holder as Readonly<Record<string, unknown>>)[key]
      : undefined;
  return within(within(config, "eval"), "periodic_eval") ?? within(config, "periodic_eval") ?? config;
}

function parsed(block: unknown): PeriodicEvalConfig {
  checkShape(block, periodicEvalSchema, "periodic_eval");
  const result = periodicEvalSchema.safeParse(block);
  if (result.success) return result.data;
  const { path, value, expected } = describeZodIssue(result.error, block);
  const key = path[0] === "phases" ? path[2] : path[0];
  throw new PeriodicEvalError({
    code: "config",
    where: ["periodic_eval", ...path].join("."),
    got: value === undefined ? "nothing" : quoteValue(value),
    // Its path is known by its separator, which a pattern does not say.
    expected:
      key === "baseline"
        ? "one of phase_start, run_start, adapter_off, or a path such as ./runs/1"
        : expected,
    fix: "Correct the value, or leave the key out for its default.",
  });
}

/** Keys first: of one that is misspelt the nearest is told. */
function checkShape(value: unknown, schema: z.ZodType, where: string): void {
  const inner = bare(schema);
  if (inner instanceof z.ZodObject) {
    const shape = inner.shape as Readonly<Record<string, z.ZodType>>;
    const isLoose = inner.def.catchall instanceof z.ZodUnknown;
    if (!isLoose) checkKeys(where, value as object, Object.keys(shape));
    for (const [key, one] of Object.entries(value as object))
      if (shape[key] !== undefined) checkInner(one, shape[key], `${where}.${key}`);
  } else if (inner instanceof z.ZodRecord && isMap(value)) {
    for (const [key, one] of Object.entries(value))
      if (isMap(one)) checkShape(one, inner.valueType as z.ZodType, `${where}.${key}`);
  }
}

function checkInner(value: unknown, schema: z.ZodType, where: string): void {
  const of = bare(schema);
  if (isMap(value) && (of instanceof z.ZodObject || of instanceof z.ZodRecord)) checkShape(value, of, where);
  if (!Array.isArray(value) || !(of instanceof z.ZodArray)) return;
  for (const [at, one] of value.entries()) checkInner(one, of.element as z.ZodType, `${where}.${at}`);
}

const isMap = (value: unknown): value is object =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Without its default, and that it may be left out or null. */
function bare(schema: z.ZodType): z.ZodType {
  let inner = schema;
  while (inner instanceof z.ZodDefault || inner instanceof z.ZodOptional || inner instanceof z.ZodNullable)
    inner = inner.unwrap() as z.ZodType;
  return inner;
}

const defined = (given: object): Partial<PhaseEvalConfig> =>
  Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
