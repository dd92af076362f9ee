import type { ValuePath } from "../errors.ts";
import { configError } from "../internal/config-error.ts";
import { isRecord } from "../internal/is-record.ts";
import { nearest } from "../internal/nearest.ts";
import { parseOptions } from "../internal/parse-options.ts";
import { periodicEvalSchema, type PhaseEvalConfig } from "./config-schema.ts";

/** Names the block in errors; their `path` is within the block. */
export const blockName = "periodic_eval";

/** The block for one phase. */
export interface ParsedBlock {
  readonly config: PhaseEvalConfig;
  /** Returns where the block sets a key for this phase: `["phases", "em", "kl"]`, or `["kl"]`. */
  pathOf(key: keyof PhaseEvalConfig): ValuePath;
}

/**
 * Parses the `periodic_eval` block of a configuration for one phase. The configuration is the block itself, or holds it as
 * `periodic_eval` or `eval.periodic_eval`. `phases.em` in the block overrides the other keys in the phase `em`.
 *
 * @param runPhases All phases of the run, if known: overrides of any other phase are then an error.
 * @throws PeriodicEvalError `config` with the path of the wrong key within the block.
 */
export function parseBlock(config: unknown, phase: string, runPhases?: readonly string[]): ParsedBlock {
  const { phases, ...base } = parseOptions(blockName, periodicEvalSchema, blockOf(config));
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
  };
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
    expected: `a phase of the run: ${runPhases.map((one) => `"${one}"`).join(" or ")}`,
    fix: guess === null ? "List all phases of the run." : `Write "${guess}", or list all phases of the run.`,
  });
}

/** Finds the block. A configuration without a block measures with the defaults. */
function blockOf(config: unknown): unknown {
  const inner = (holder: unknown, key: string) => (isRecord(holder) ? holder[key] : undefined);
  return inner(inner(config, "eval"), "periodic_eval") ?? inner(config, "periodic_eval") ?? config;
}
