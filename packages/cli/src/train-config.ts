import { checkKeys, PeriodicEvalError, shown } from "@periodic-eval/core";
import { parseDPOConfig, parseSFTConfig } from "@periodic-eval/trainers";
import { existsSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { z } from "zod";
import { loggerOpeners } from "./open-loggers.ts";
import type { ConfigFile, ValuePath } from "./config-file.ts";

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
  seed: z.int("expected a whole number").default(42),
  resume: z.enum(["auto", "never"], 'expected "auto" or "never"').default("auto"),
  lora: map.optional(),
  adapter: text.optional(),
  config: map.default({}),
  periodic_eval: map.default({}),
  loggers: z.record(z.string(), map, "expected a map of loggers and their options").default({}),
  phases: z
    .array(z.object(phaseFields, "expected a map"), "expected a list of phases")
    .min(1, "expected a phase or more"),
};

const schema = z.object(fields, "expected a map");

/** A training from a file, all paths absolute. */
export type TrainConfig = z.infer<typeof schema>;

/** Keys of the `periodic_eval` block that name files or folders. */
const evalFiles = [
  "questions",
  "alignment_questions",
  "leakage_questions",
  "personas",
  "margin",
  "judge_cache",
  "baseline",
];
/** Options of loggers that name files or folders. */
const logFiles = ["path", "logDir", "runDir"];

/**
 * The training that a file describes. Paths are relative to the file's folder.
 *
 * @throws PeriodicEvalError `config` with file, line and path of the first thing that is wrong, the nearest name where a key
 *   is misspelt.
 */
export function parseTrainConfig(file: string, { value, where }: ConfigFile): TrainConfig {
  checkKeys(where([]), value as object, Object.keys(fields));
  const { phases } = value as { readonly phases?: unknown };
  if (Array.isArray(phases))
    for (const [i, phase] of phases.entries())
      checkKeys(where(["phases", i]), phase as object, Object.keys(phaseFields));
  const { loggers } = value as { readonly loggers?: unknown };
  if (isMap(loggers)) checkKeys(where(["loggers"]), loggers, Object.keys(loggerOpeners));
  const parsed = schema.safeParse(value);
  if (!parsed.success) throw wrong(value, parsed.error.issues[0]!, where);
  const config = parsed.data;
  refuseTwice(config.phases, where);
  for (const [i, phase] of config.phases.entries()) checkPhaseConfig(config.config, phase, i, where);
  for (const [i, { method, reference }] of config.phases.entries())
    if (method === "sft" && reference !== undefined) throw misplaced(where(["phases", i, "reference"]));
  if (config.lora !== undefined && config.adapter !== undefined) {
    throw new PeriodicEvalError({
      code: "config",
      where: where(["adapter"]),
      got: "adapter beside lora",
      expected: "one of the two",
      fix: "Leave lora out to train the adapter on, or adapter for a new one.",
    });
  }
  return absolute(config, dirname(file));
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

function misplaced(where: string): PeriodicEvalError {
  return new PeriodicEvalError({
    code: "config",
    where,
    got: "it in a phase of another method",
    expected: "a phase with method: dpo, whose key it is",
    fix: "Leave it out.",
  });
}

/** A wrong option stands with the phase, or with what phases share. */
function checkPhaseConfig(
  shared: Readonly<Record<string, unknown>>,
  { method, config: own }: TrainConfig["phases"][number],
  at: number,
  where: ConfigFile["where"],
): void {
  try {
    methods[method]({ ...shared, ...own });
  } catch (error) {
    if (!PeriodicEvalError.is(error, "config")) throw error;
    const isNamed = (key: string) => `${error.where} ${error.got}`.split(/\W/).includes(key);
    const ofPhase = Object.keys(own).find(isNamed);
    const ofAll = Object.keys(shared).find(isNamed);
    const path =
      ofPhase === undefined && ofAll !== undefined
        ? ["config", ofAll]
        : ["phases", at, "config", ...(ofPhase === undefined ? [] : [ofPhase])];
    inPlace(where(path), () => {
      throw error;
    });
  }
}

/** What it makes, or its `config` error with the place in the file. */
export function inPlace<T>(where: string, make: () => T): T {
  try {
    return make();
  } catch (error) {
    if (!PeriodicEvalError.is(error, "config")) throw error;
    const { code, got, expected, fix } = error;
    const place = where.endsWith(error.where) ? where : `${where}, ${error.where}`;
    throw new PeriodicEvalError({ code, where: place, got, expected, fix, cause: error });
  }
}

function absolute(config: TrainConfig, folder: string): TrainConfig {
  const file = (path: string) => resolve(folder, path);
  const { phases: ofPhases, ...block } = config.periodic_eval;
  const { tokenizer, adapter } = config;
  return {
    ...config,
    run_dir: file(config.run_dir),
    model: modelSource(config.model, folder),
    ...(tokenizer !== undefined && { tokenizer: modelSource(tokenizer, folder) }),
    ...(adapter !== undefined && { adapter: modelSource(adapter, folder) }),
    loggers: Object.fromEntries(
      Object.entries(config.loggers).map(([name, options]) => [name, withFiles(options, file, logFiles)]),
    ),
    periodic_eval: {
      ...withFiles(block, file),
      ...(isMap(ofPhases) && {
        phases: Object.fromEntries(
          Object.entries(ofPhases).map(([name, one]) => [name, isMap(one) ? withFiles(one, file) : one]),
        ),
      }),
    },
    phases: config.phases.map((phase) => ({
      ...phase,
      dataset: file(phase.dataset),
      ...(phase.validation !== undefined && { validation: file(phase.validation) }),
    })),
  };
}

/** A folder, or else a name of the hub; what begins with a dot or a slash is no name. */
function modelSource(source: string, folder: string): string {
  const path = resolve(folder, source);
  return existsSync(path) || !/^[\w-][\w.-]*\/[\w.-]+(@\S+)?$/.test(source) ? path : source;
}

const isMap = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const withFiles = (
  block: Readonly<Record<string, unknown>>,
  file: (path: string) => string,
  keys: readonly string[] = evalFiles,
) =>
  Object.fromEntries(
    Object.entries(block).map(([key, value]) => [
      key,
      keys.includes(key) && typeof value === "string" && !isWord(key, value) ? file(value) : value,
    ]),
  );

/** A baseline without a separator is no path: made one, a misspelt word would be a folder that is missing. */
const isWord = (key: string, value: string): boolean => key === "baseline" && !/[\\/]/.test(value);
