import { PeriodicEvalError } from "@periodic-eval/core";
import { checkKeys, quoteValue, describeZodIssue } from "@periodic-eval/core/internal";
import { parseDPOConfig, parseSFTConfig } from "@periodic-eval/trainers";
import { z } from "zod";
import type { ValuePath } from "@periodic-eval/core";
import type { ConfigFile } from "@periodic-eval/core/config";
import { blockAt, isMap, loggerAt, modelAt, pathAt, valueAt } from "./config-paths.ts";
import { optionPath, placed } from "./config-place.ts";
import { placesOfBlock, refuseTwoBlocks } from "./eval-block.ts";
import { throwAll } from "./every-error.ts";
import { loggerNames } from "./open-loggers.ts";

const text = z.string("expected a text").min(1, "expected a text");
const map = z.record(z.string(), z.unknown(), "expected a map");

/** What each method makes of a configuration; it throws for a wrong one. */
const methods = { sft: parseSFTConfig, dpo: parseDPOConfig } as const;

const phaseFields = {
  phase: text,
  method: z.enum(["sft", "dpo"], 'expected "sft" or "dpo"').default("sft"),
  dataset: text,
  validation: text.optional(),
  /** Of dpo. */
  reference: z.enum(["copy", "base", "precomputed"], 'expected "copy", "base" or "precomputed"').optional(),
  config: map.default({}),
};

const phaseSchema = z.object(phaseFields, "expected a map");
type Phase = z.infer<typeof phaseSchema>;

const fields = {
  model: text,
  tokenizer: text.optional(),
  backend: text.optional(),
  run_dir: text,
  /** Of everything random in every phase, and of a new adapter unless `lora` names its own. */
  seed: z.int("expected a whole number").default(42),
  resume: z.enum(["auto", "never"], 'expected "auto" or "never"').default("auto"),
  lora: map.optional(),
  adapter: text.optional(),
  config: map.default({}),
  periodic_eval: map.default({}),
  /** Another place for the block. */
  eval: z.object({ periodic_eval: map.optional() }, "expected a map").optional(),
  loggers: z.record(z.string(), map, "expected a map of loggers and their options").default({}),
  phases: z.array(phaseSchema, "expected a list of phases").min(1, "expected a phase or more"),
};

const schema = z.object(fields, "expected a map");

/** A training from a file, all paths absolute. */
export type TrainConfig = Omit<z.infer<typeof schema>, "eval">;

/** A training from a file, and what is wrong with it beyond the form. */
export interface ParsedTraining {
  readonly config: TrainConfig;
  /** Where in the file its `periodic_eval` block stands, or would. */
  readonly blockPlace: ValuePath;
  readonly wrong: readonly unknown[];
}

/**
 * The training that a file describes. What is wrong with it but leaves its form whole is handed back, to be told with what
 * else shows before weights are loaded.
 *
 * @throws PeriodicEvalError `config` with file, line and path, the nearest name where a key is misspelt, or an
 *   AggregateError of several: all that is wrong, where it is not of the form of a training.
 */
export function parseTrainConfig(file: ConfigFile): ParsedTraining {
  const { value, where } = file;
  if (!isMap(value)) checkKeys(where([]), value as object, Object.keys(fields));
  const misspelt = misspeltKeys(value, file);
  const parsed = schema.safeParse(value);
  const twice = thrownBy(() => refuseTwoBlocks(file));
  const wrong = [...misspelt.map(({ error }) => error), ...twice, ...mistakes(value, where)];
  if (parsed.success) {
    const blockPlace = placesOfBlock(file)[0] ?? ["periodic_eval"];
    return { config: absolute(parsed.data, file, blockPlace), blockPlace, wrong };
  }
  // What is missing beside a misspelt key is most likely what that key means.
  const told = ({ path }: z.core.$ZodIssue) =>
    valueAt(value, path as ValuePath) === undefined &&
    misspelt.some(({ path: map }) => map.join(".") === path.slice(0, -1).join("."));
  const issues = parsed.error.issues.filter((issue) => !told(issue));
  throwAll([...issues.map((issue) => ofForm(value, issue, where)), ...wrong]);
  throw parsed.error;
}

interface Misspelt {
  /** Of the map that has the key. */
  readonly path: ValuePath;
  readonly error: unknown;
}

function misspeltKeys(
  value: unknown,
  { where, isOverridden }: Pick<ConfigFile, "where" | "isOverridden">,
): readonly Misspelt[] {
  const phases = valueAt(value, ["phases"]);
  const maps: readonly (readonly [ValuePath, readonly string[]])[] = [
    [[], Object.keys(fields)],
    ...(Array.isArray(phases) ? [...phases.keys()] : []).map(
      (i) => [["phases", i], Object.keys(phaseFields)] as const,
    ),
    [["loggers"], loggerNames],
    [["eval"], ["periodic_eval"]],
  ];
  return maps.flatMap(([path, known]) => {
    const map = valueAt(value, path);
    if (!isMap(map)) return [];
    return Object.keys(map).flatMap((key) => {
      // No line of the file has what an override wrote.
      const at = isOverridden([...path, key]) ? [...path, key] : path;
      return thrownBy(() => checkKeys(where(at), { [key]: null }, known)).map((error) => ({ path, error }));
    });
  });
}

/** What is wrong beyond the form, in all that has it. */
function mistakes(value: unknown, where: ConfigFile["where"]): readonly unknown[] {
  const { phases: list, config, lora, adapter } = value as Readonly<Record<string, unknown>>;
  const shared = isMap(config) ? config : {};
  const phases = (Array.isArray(list) ? list : []).map((one) => phaseSchema.safeParse(one).data ?? null);
  const ofPhases = phases.flatMap((phase, i) => {
    if (phase === null) return [];
    const { method, reference, config: own } = phase;
    return [
      ...thrownBy(() => refuseTwice(phases, i, where)),
      ...thrownBy(() => refuseSeed(own, ["phases", i, "config"], where)),
      ...thrownBy(() => checkPhaseConfig(phase, i, shared, where)),
      ...(method === "sft" && reference !== undefined ? [misplaced(where(["phases", i, "reference"]))] : []),
    ];
  });
  const both = new PeriodicEvalError({
    code: "config",
    where: where(["adapter"]),
    got: "adapter beside lora",
    expected: "one of the two",
    fix: "Leave lora out to train the adapter on, or adapter for a new one.",
  });
  return [
    ...thrownBy(() => refuseSeed(shared, ["config"], where)),
    ...ofPhases,
    ...(lora !== undefined && adapter !== undefined ? [both] : []),
  ];
}

function thrownBy(check: () => void): readonly unknown[] {
  try {
    check();
    return [];
  } catch (error) {
    return [error];
  }
}

function ofForm(value: unknown, issue: z.core.$ZodIssue, where: ConfigFile["where"]): PeriodicEvalError {
  const { path, value: got, expected } = describeZodIssue({ issues: [issue] }, value);
  return new PeriodicEvalError({
    code: "config",
    where: where(path),
    got: got === undefined ? "nothing" : quoteValue(got),
    expected,
    fix: "Correct the value.",
  });
}

function refuseTwice(phases: readonly (Phase | null)[], at: number, where: ConfigFile["where"]): void {
  const names = phases.map((one) => one?.phase);
  if (names.indexOf(names[at]) === at) return;
  throw new PeriodicEvalError({
    code: "config",
    where: where(["phases", at, "phase"]),
    got: `${quoteValue(names[at])}, as another phase is named`,
    expected: "names that differ",
    fix: "Rename one: snapshots and checkpoints are filed by phase.",
  });
}

/** A run has one; what is random in a phase is named by it and the phase. */
function refuseSeed(
  config: Readonly<Record<string, unknown>>,
  path: ValuePath,
  where: ConfigFile["where"],
): void {
  if (!("seed" in config)) return;
  const seed = quoteValue(config["seed"]);
  throw new PeriodicEvalError({
    code: "config",
    where: where([...path, "seed"]),
    got: `${seed}, a second seed`,
    expected: "none: the seed of a run stands at the top of its file",
    fix: `Leave it out, and write seed: ${seed} at the top where it is meant.`,
  });
}

function misplaced(where: string): PeriodicEvalError {
  return new PeriodicEvalError({
    code: "config",
    where,
    got: "it in a phase of another method",
    expected: "a phase with method: dpo, whose key it is",
    fix: "Leave it out.",
  });
}

function checkPhaseConfig(
  phase: Phase,
  at: number,
  shared: TrainConfig["config"],
  where: ConfigFile["where"],
): void {
  try {
    methods[phase.method]({ ...shared, ...phase.config });
  } catch (error) {
    throw placed(where(phaseErrorPath(phase, at, shared, error)), error);
  }
}

/** Where in the file the reason is that a phase is refused: a key of it, or an option of it or of what phases share. */
export function phaseErrorPath(
  phase: Phase,
  at: number,
  shared: TrainConfig["config"],
  error: unknown,
): ValuePath {
  const place = PeriodicEvalError.is(error) ? error.where : "";
  const option = PeriodicEvalError.is(error) && / options\b/.test(place) ? error.path[0] : undefined;
  if (option === "runDir") return ["run_dir"];
  const field = (["dataset", "validation", "reference"] as const).find(
    (key) => key === option || phase[key] === place || place.startsWith(`${phase[key]}:`),
  );
  if (field !== undefined) return ["phases", at, field];
  return optionPath(error, [["phases", at, "config"], phase.config], [["config"], shared]);
}

function absolute(
  { eval: outer, ...config }: z.infer<typeof schema>,
  file: ConfigFile,
  blockPlace: ValuePath,
): TrainConfig {
  const { tokenizer, adapter, loggers } = config;
  const block = outer?.periodic_eval ?? config.periodic_eval;
  return {
    ...config,
    run_dir: pathAt(file, ["run_dir"], config.run_dir),
    model: modelAt(file, ["model"], config.model),
    ...(tokenizer !== undefined && { tokenizer: modelAt(file, ["tokenizer"], tokenizer) }),
    ...(adapter !== undefined && { adapter: modelAt(file, ["adapter"], adapter) }),
    loggers: Object.fromEntries(
      loggerNames.flatMap((name) => {
        const options = loggers[name];
        return options === undefined ? [] : [[name, loggerAt(file, ["loggers", name], options)]];
      }),
    ),
    periodic_eval: blockAt(file, blockPlace, block),
    phases: config.phases.map((phase, i) => ({
      ...phase,
      dataset: pathAt(file, ["phases", i, "dataset"], phase.dataset),
      ...(phase.validation !== undefined && {
        validation: pathAt(file, ["phases", i, "validation"], phase.validation),
      }),
    })),
  };
}
