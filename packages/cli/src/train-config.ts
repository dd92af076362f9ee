import { checkKeys, PeriodicEvalError, shown } from "@periodic-eval/core";
import { parseDPOConfig, parseSFTConfig } from "@periodic-eval/trainers";
import { z } from "zod";
import type { ConfigFile, ValuePath } from "./config-file.ts";
import { blockAt, isMap, loggerAt, modelAt, pathAt } from "./config-paths.ts";
import { optionPath, placed } from "./config-place.ts";
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
  loggers: z
    .partialRecord(z.enum(loggerNames), map, "expected a map of loggers and their options")
    .default({}),
  phases: z
    .array(z.object(phaseFields, "expected a map"), "expected a list of phases")
    .min(1, "expected a phase or more"),
};

const schema = z.object(fields, "expected a map");

/** A training from a file, all paths absolute. */
export type TrainConfig = z.infer<typeof schema>;

/**
 * The training that a file describes.
 *
 * @throws PeriodicEvalError `config` with file, line and path of the first thing that is wrong, the nearest name where a key
 *   is misspelt.
 */
export function parseTrainConfig(file: ConfigFile): TrainConfig {
  const { value, where } = file;
  checkKeys(where([]), value as object, Object.keys(fields));
  const { phases } = value as { readonly phases?: unknown };
  if (Array.isArray(phases))
    for (const [i, phase] of phases.entries())
      checkKeys(where(["phases", i]), phase as object, Object.keys(phaseFields));
  const { loggers } = value as { readonly loggers?: unknown };
  if (isMap(loggers)) checkKeys(where(["loggers"]), loggers, loggerNames);
  const parsed = schema.safeParse(value);
  if (!parsed.success) throw wrong(value, parsed.error.issues[0]!, where);
  const config = parsed.data;
  refuseTwice(config.phases, where);
  refuseSeed(config.config, ["config"], where);
  for (const [i, { method, reference, config: own }] of config.phases.entries()) {
    refuseSeed(own, ["phases", i, "config"], where);
    checkPhaseConfig(config, i, where);
    if (method === "sft" && reference !== undefined) throw misplaced(where(["phases", i, "reference"]));
  }
  if (config.lora !== undefined && config.adapter !== undefined) {
    throw new PeriodicEvalError({
      code: "config",
      where: where(["adapter"]),
      got: "adapter beside lora",
      expected: "one of the two",
      fix: "Leave lora out to train the adapter on, or adapter for a new one.",
    });
  }
  return absolute(config, file);
}

function wrong(
  value: unknown,
  { path, message }: z.core.$ZodIssue,
  where: ConfigFile["where"],
): PeriodicEvalError {
  const at = path as ValuePath;
  const got = at.reduce<unknown>(
    (of, key) => (of as Record<string | number, unknown> | undefined)?.[key],
    value,
  );
  return new PeriodicEvalError({
    code: "config",
    where: where(at),
    got: got === undefined ? "nothing" : shown(got),
    expected: message.replace(/^expected /, ""),
    fix: "Correct the value.",
  });
}

function refuseTwice(phases: TrainConfig["phases"], where: ConfigFile["where"]): void {
  const names = phases.map(({ phase }) => phase);
  const twice = names.findIndex((name, i) => names.indexOf(name) !== i);
  if (twice === -1) return;
  throw new PeriodicEvalError({
    code: "config",
    where: where(["phases", twice, "phase"]),
    got: `${shown(names[twice])}, as another phase is named`,
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
  const seed = shown(config["seed"]);
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

function checkPhaseConfig(config: TrainConfig, at: number, where: ConfigFile["where"]): void {
  const { method, config: own } = config.phases[at]!;
  try {
    methods[method]({ ...config.config, ...own });
  } catch (error) {
    throw placed(where(phaseErrorPath(config, at, error)), error);
  }
}

/** Where in the file the reason is that a phase is refused: a key of it, or an option of it or of what phases share. */
export function phaseErrorPath(
  { config: shared, phases }: TrainConfig,
  at: number,
  error: unknown,
): ValuePath {
  const phase = phases[at]!;
  const place = PeriodicEvalError.is(error) ? error.where : "";
  const field = (["dataset", "validation", "reference"] as const).find(
    (key) => place.endsWith(` ${key}`) || (place !== "" && place === phase[key]),
  );
  if (field !== undefined) return ["phases", at, field];
  return optionPath(error, [["phases", at, "config"], phase.config], [["config"], shared]);
}

function absolute(config: TrainConfig, file: ConfigFile): TrainConfig {
  const { tokenizer, adapter, loggers, periodic_eval: block } = config;
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
    periodic_eval: blockAt(file, ["periodic_eval"], block),
    phases: config.phases.map((phase, i) => ({
      ...phase,
      dataset: pathAt(file, ["phases", i, "dataset"], phase.dataset),
      ...(phase.validation !== undefined && {
        validation: pathAt(file, ["phases", i, "validation"], phase.validation),
      }),
    })),
  };
}
