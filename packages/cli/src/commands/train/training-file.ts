import { periodicEvalConfig, type PeriodicEvalError, type ValuePath } from "@periodic-eval/core";
import type { ConfigFile } from "@periodic-eval/data/config";
import {
  describeZodIssue,
  fixAt,
  isRecord,
  nearest,
  pathText,
  quoteValue,
  unknownOption,
  valueAt,
} from "@periodic-eval/contracts/options";
import { periodicEvalJsonSchema } from "@periodic-eval/core/config";
import {
  dpoConfigJsonSchema,
  parseDPOConfig,
  parseSFTConfig,
  sftConfigJsonSchema,
} from "@periodic-eval/trainers";
import * as z from "zod";
import {
  errorsOf,
  throwAll,
  resolveBlockPaths,
  resolveLoggerPaths,
  resolveModel,
  resolvePath,
  resolveSource,
  atPlace,
  fileError,
  blockPaths,
  refuseTwoBlocks,
} from "../../config/config-file.ts";
import { engineSchema } from "../../config/open-model.ts";
import { loggerNames } from "../../config/open-loggers.ts";

const nonEmptyString = z.string("a non-empty string").min(1, "a non-empty string");
const map = () => z.record(z.string(), z.unknown(), "a map");
/** Maps of which other packages know the keys. */
export const [configMap, loraMap, blockMap] = [map(), map(), map()];

/** Parsers of a phase's `config`, by training method. Each throws for a wrong option. */
const configParsers = { sft: parseSFTConfig, dpo: parseDPOConfig } as const;

const phaseFields = {
  phase: nonEmptyString.describe("Unique name of the phase: the folder of its snapshots and checkpoints."),
  method: z
    .enum(["sft", "dpo"], '"sft" or "dpo"')
    .default("sft")
    .describe("sft: supervised fine-tuning. dpo: direct preference optimization on pairs."),
  dataset: nonEmptyString.describe(
    "Rows: a JSON Lines or Parquet file, relative to this file, or hf:owner/dataset[/config][/split] on the Hugging Face Hub.",
  ),
  validation: nonEmptyString
    .optional()
    .describe("Validation rows, given as for dataset; an alternative to validationShare."),
  reference: z
    .enum(["copy", "base", "precomputed"], '"copy", "base" or "precomputed"')
    .optional()
    .describe("Only for `method: dpo`."),
  config: configMap
    .default({})
    .describe("Options of the trainer for this phase; they take precedence over the shared ones."),
};

const phaseSchema = z.strictObject(phaseFields, "a map such as { phase: em, dataset: em.jsonl }");
type Phase = z.infer<typeof phaseSchema>;
/** A phase of which unknown keys are reported elsewhere. */
const anyPhase = z.object(phaseFields);

const loggerFields = Object.fromEntries(
  loggerNames.map((name) => [
    name,
    map().optional().describe(`Options of the ${name} logger; {} for its defaults.`),
  ]),
);
const outerFields = { periodic_eval: blockMap.optional().describe("What to measure while training.") };

const fields = {
  model: nonEmptyString.describe(
    "Folder in Hugging Face format, relative to this file, or owner/name on the Hugging Face Hub.",
  ),
  tokenizer: nonEmptyString.optional().describe("Folder or owner/name of the tokenizer. Default: the model."),
  backend: nonEmptyString
    .optional()
    .describe("tfjs-node-gpu, tfjs-node, webgpu, wasm or cpu. Default: the fastest one installed."),
  engine: engineSchema
    .optional()
    .describe("A vLLM server that measures the adapter while training pauses. Needs lora or adapter."),
  run_dir: nonEmptyString.describe("Folder of snapshots, checkpoints and the page, relative to this file."),
  seed: z
    .int("an integer")
    .default(42)
    .describe("Seed of all randomness in every phase, and of a new adapter unless `lora` has its own seed."),
  resume: z
    .enum(["auto", "never"], '"auto" or "never"')
    .default("auto")
    .describe("auto: continue from the newest checkpoint. never: set checkpoints aside and start over."),
  lora: loraMap.optional().describe("Trains a new LoRA adapter with these options instead of all weights."),
  adapter: nonEmptyString
    .optional()
    .describe("Folder of an adapter to continue training, relative to this file."),
  config: configMap.default({}).describe("Options of the trainers of all phases."),
  periodic_eval: blockMap
    .optional()
    .describe("What to measure while training. Without this block nothing is measured."),
  eval: z
    .strictObject(outerFields, "a map")
    .optional()
    .describe("An alternative place for the block: `eval.periodic_eval`."),
  loggers: z
    .strictObject(loggerFields, "a map of loggers and their options")
    .default({})
    .describe("Loggers by name, each with its options."),
  phases: z
    .array(phaseSchema, "a list of phases")
    .min(1, "one phase or more")
    .describe("Phases of training, one after the other on the same weights."),
};

/** The form of a training file. Other checks look at its content. */
export const trainingSchema = z.strictObject(fields, "a map");

/** The training that a file describes, with absolute paths. */
export type TrainConfig = Omit<z.infer<typeof trainingSchema>, "eval">;

type Options = Readonly<Record<string, unknown>>;

export interface ParsedTraining {
  readonly file: ConfigFile;
  readonly config: TrainConfig;
  /** Path of the `periodic_eval` block in the file, or where it would be. Without a block nothing is measured. */
  readonly blockPath: ValuePath;
  /** Errors that do not keep the file from being parsed. `prepareTraining` throws them together with its own. */
  readonly errors: readonly unknown[];
}

/**
 * Parses a training file.
 *
 * @throws PeriodicEvalError `config` with file, line and path if the file does not have the form of a training. Several errors
 *   are an AggregateError of all errors of the file. A misspelt key names the nearest known one.
 */
export function parseTrainingFile(file: ConfigFile): ParsedTraining {
  const { value } = file;
  if (!isRecord(value))
    throw fileError(file, [], {
      got: quoteValue(value),
      expected: `a map with ${Object.keys(fields).join(", ")}`,
      fix: "Write key: value pairs.",
    });
  const { known, unknown } = withoutUnknownKeys(value);
  const errors = [
    ...unknown.flatMap((key) => unknownKeyError(file, key) ?? []),
    ...errorsOf(() => refuseTwoBlocks(file)),
    ...contentErrors(value, file),
  ];
  const parsed = trainingSchema.safeParse(known);
  const blockPath = blockPaths(file)[0] ?? ["periodic_eval"];
  if (parsed.success)
    return { file, config: withAbsolutePaths(parsed.data, file, blockPath), blockPath, errors };
  // A required key that is misspelt is not missing too.
  const meant = unknown.map(({ path, key, known: names }) => pathText([...path, nearest(key, names) ?? ""]));
  const wrong = parsed.error.issues.filter(
    ({ path }) =>
      valueAt(value, path as ValuePath) !== undefined || !meant.includes(pathText(path as ValuePath)),
  );
  throwAll([
    ...wrong.map((issue) => formError(value, issue, file)),
    ...errors,
    ...blockErrors(file, blockPath),
  ]);
  throw parsed.error;
}

/** A key that the map at `path` cannot have. */
interface UnknownKey {
  readonly path: ValuePath;
  readonly key: string;
  /** The keys that it can have. */
  readonly known: readonly string[];
}

/** Returns the value without the keys that a training file cannot have, and these keys. */
function withoutUnknownKeys(value: Options): { readonly known: unknown; readonly unknown: UnknownKey[] } {
  const known = structuredClone(value);
  const unknown: UnknownKey[] = [];
  for (const issue of trainingSchema.safeParse(value).error?.issues ?? []) {
    if (issue.code !== "unrecognized_keys") continue;
    const path = issue.path as ValuePath;
    const names = Object.keys(keysOfMaps[String(path[0] ?? "")]!);
    for (const key of issue.keys) {
      unknown.push({ path, key, known: names });
      delete (valueAt(known, path) as Record<string, unknown>)[key];
    }
  }
  return { known, unknown: unknown.toSorted((a, b) => a.path.length - b.path.length) };
}

/** The keys of each map, by the key that holds it. */
const keysOfMaps: Readonly<Record<string, object>> = {
  "": fields,
  phases: phaseFields,
  loggers: loggerFields,
  eval: outerFields,
  engine: engineSchema.shape,
};

/** Returns null for a key that belongs into an empty map above it, which is an error of its own: it was to be indented. */
function unknownKeyError(file: ConfigFile, { path, key, known }: UnknownKey): PeriodicEvalError | null {
  const elsewhere = keysInside(path);
  const map = valueAt(file.value, path) as Options;
  const isUnindented = elsewhere.some((option) => {
    const [home, inner] = option.split(".");
    return inner === key && map[home!] === null;
  });
  return isUnindented ? null : fileError(file, [...path, key], unknownOption(key, known, elsewhere));
}

/** Returns the keys of the maps inside the file's top map or a phase, which are often written outside of them. */
function keysInside([list]: ValuePath): readonly string[] {
  if (list !== undefined && list !== "phases") return [];
  const options = [...optionNames.sft, ...optionNames.dpo].map((key) => `config.${key}`);
  const block = Object.keys(periodicEvalJsonSchema()["properties"] as Options);
  return list === "phases" ? options : [...options, ...block.map((key) => `periodic_eval.${key}`)];
}

/** The options of `config`, by training method. A file has one seed, at its top. */
const optionNames = {
  sft: namesIn(sftConfigJsonSchema()),
  dpo: namesIn(dpoConfigJsonSchema()),
} as const;

function namesIn(schema: Options): readonly string[] {
  return Object.keys(schema["properties"] as Options).filter((name) => name !== "seed");
}

/** Checks the block of a file whose other parts are too incomplete to build it. */
function blockErrors(file: ConfigFile, blockPath: ValuePath): readonly unknown[] {
  const block = valueAt(file.value, blockPath);
  if (!isRecord(block)) return [];
  const phases = valueAt(file.value, ["phases"]);
  const listed = (Array.isArray(phases) ? phases : []).map((phase) => anyPhase.safeParse(phase).data?.phase);
  const names = listed.filter((name) => name !== undefined);
  const isWhole = names.length > 0 && names.length === listed.length;
  const check = (phase: string) =>
    periodicEvalConfig({ periodic_eval: block }, phase, isWhole ? names : undefined);
  return (isWhole ? names : ["train"]).flatMap((phase) =>
    errorsOf(() => check(phase)).map((error) => atPlace(file, error, (option) => [...blockPath, ...option])),
  );
}

type Described = Readonly<Record<string, { readonly description?: string | undefined }>>;

function formError(value: unknown, issue: z.core.$ZodIssue, file: ConfigFile): PeriodicEvalError {
  const { path, value: got, expected } = describeZodIssue({ issues: [issue] }, value);
  if (got === undefined) {
    const key = String(path.at(-1));
    const { description } = ((path.length === 1 ? fields : phaseFields) as Described)[key] ?? {};
    const fix = `Add ${key}${description === undefined ? "." : `: ${description}`}`;
    return fileError(file, path, { got: "nothing: it is missing", expected, fix });
  }
  const fix = fixAt(trainingSchema, path, got) ?? "Correct the value.";
  return fileError(file, path, { got: quoteValue(got), expected, fix });
}

/** Checks the content of everything that has the right form. */
function contentErrors(value: Options, file: ConfigFile): readonly unknown[] {
  const { phases: list, config, lora, adapter, engine } = value;
  const shared = isRecord(config) ? config : {};
  const phases = (Array.isArray(list) ? list : []).map((phase) => anyPhase.safeParse(phase).data ?? null);
  const errors: unknown[] = [];
  const add = (path: ValuePath, got: string, expected: string, fix: string) =>
    errors.push(fileError(file, path, { got, expected, fix }));
  // A run has one seed. Random streams of a phase derive from it and the phase's name.
  const checkSeed = (options: Options, path: ValuePath) => {
    if (!("seed" in options)) return;
    const seed = quoteValue(options["seed"]);
    const fix = `Remove it; to use it for the run, write seed: ${seed} at the top.`;
    add([...path, "seed"], `${seed}, a second seed`, "only the seed at the top of the file", fix);
  };
  if (engine !== undefined && (lora ?? adapter) === undefined)
    add(
      ["engine"],
      "engine without lora or adapter",
      "a training of an adapter: a running server cannot load other weights",
      "Add lora: {} to train an adapter, or leave out the server to measure in this process.",
    );
  checkSeed(shared, ["config"]);
  for (const [at, phase] of phases.entries()) {
    if (phase === null) continue;
    const path = ["phases", at];
    const renaming = "Rename one of the phases: their names are the folders of snapshots and checkpoints.";
    if (phases.findIndex((other) => other?.phase === phase.phase) < at)
      add(
        [...path, "phase"],
        `${quoteValue(phase.phase)}, the name of an earlier phase`,
        "a unique name",
        renaming,
      );
    checkSeed(phase.config, [...path, "config"]);
    errors.push(...configErrors(phase, at, shared, file));
    const misplaced = "a reference in a phase without method: dpo";
    if (phase.method === "sft" && phase.reference !== undefined)
      add([...path, "reference"], misplaced, "a phase with method: dpo", "Remove it.");
  }
  const either = "Remove lora to continue training the adapter, or adapter to train a new one.";
  if (lora !== undefined && adapter !== undefined)
    add(["adapter"], "adapter together with lora", "only one of the two", either);
  return errors;
}

/** Checks the options of a phase's trainer. The trainer itself reports only the first unknown one. */
function configErrors(
  phase: Phase,
  at: number,
  shared: TrainConfig["config"],
  file: ConfigFile,
): readonly unknown[] {
  const known = optionNames[phase.method];
  const { seed: _, ...options } = { ...shared, ...phase.config };
  const unknown = Object.keys(options).filter((key) => !known.includes(key));
  const knownOptions = Object.fromEntries(Object.entries(options).filter(([key]) => known.includes(key)));
  return [
    ...unknown.map((key) => {
      const holder = Object.hasOwn(phase.config, key) ? ["phases", at, "config"] : ["config"];
      return fileError(file, [...holder, key], unknownOption(key, known));
    }),
    ...errorsOf(() => configParsers[phase.method](knownOptions)).map((error) =>
      atPlace(file, error, phasePathOf(phase, at, shared)),
    ),
  ];
}

/** Returns the path in the file of an option of a phase's trainer: a key or an option of the phase, or a shared one. */
export const phasePathOf =
  (phase: Phase, at: number, shared: TrainConfig["config"]) =>
  (option: ValuePath): ValuePath => {
    const [key] = option;
    if (key === "runDir") return ["run_dir"];
    if (key === undefined || Object.hasOwn(phaseFields, key)) return ["phases", at, ...option];
    const isShared = !Object.hasOwn(phase.config, key) && Object.hasOwn(shared, key);
    return [...(isShared ? [] : ["phases", at]), "config", ...option];
  };

function withAbsolutePaths(
  { eval: outer, ...config }: z.infer<typeof trainingSchema>,
  file: ConfigFile,
  blockPath: ValuePath,
): TrainConfig {
  const { tokenizer, adapter, loggers } = config;
  const block = outer?.periodic_eval ?? config.periodic_eval;
  return {
    ...config,
    run_dir: resolvePath(file, ["run_dir"], config.run_dir),
    model: resolveModel(file, ["model"], config.model),
    ...(tokenizer !== undefined && { tokenizer: resolveModel(file, ["tokenizer"], tokenizer) }),
    ...(adapter !== undefined && { adapter: resolveModel(file, ["adapter"], adapter) }),
    loggers: Object.fromEntries(
      loggerNames.flatMap((name) => {
        const options = loggers[name];
        return options === undefined ? [] : [[name, resolveLoggerPaths(file, ["loggers", name], options)]];
      }),
    ),
    ...(block !== undefined && { periodic_eval: resolveBlockPaths(file, blockPath, block) }),
    phases: config.phases.map((phase, i) => ({
      ...phase,
      dataset: resolveSource(file, ["phases", i, "dataset"], phase.dataset),
      ...(phase.validation !== undefined && {
        validation: resolveSource(file, ["phases", i, "validation"], phase.validation),
      }),
    })),
  };
}
