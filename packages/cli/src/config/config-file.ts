import { resolve } from "node:path";
import {
  atOption,
  atWritten,
  changedError,
  errorMessage,
  isRecord,
  valueAt,
} from "@periodic-eval/contracts/options";
import { PeriodicEvalError, type ValuePath } from "@periodic-eval/core";
import { type ConfigFile, readConfigFile } from "@periodic-eval/data/config";
import { isPublishedQuestions, fixForMissing, isMissingFile, isHubSource } from "@periodic-eval/data";
import { resolveEntryPaths, resolveJudgePath, resolveModelPath } from "@periodic-eval/tasks";

/**
 * Returns an error about options as one about a file, with its line.
 *
 * @param pathOf Returns the path in the file of an option.
 */
export function atPlace(file: ConfigFile, error: unknown, pathOf: (option: ValuePath) => ValuePath): unknown {
  const placed = atWritten(error, { where: file.where, pathOf, root: "periodic_eval" });
  if (!PeriodicEvalError.is(placed) || !mayNameDataset(placed.path) || !isMissingFile(placed)) return placed;
  return changedError(placed, { fix: fixForMissing(valueAt(file.value, placed.path), placed.fix) });
}

/** Whether an error is about a key of a `periodic_eval` block, whose file it does not know. */
export const isAboutBlock = (error: unknown): boolean =>
  PeriodicEvalError.is(error) && error.where.startsWith("periodic_eval.");

/** Returns an error about the value at `path` in a file. */
export const fileError = (
  file: Pick<ConfigFile, "where">,
  path: ValuePath,
  details: { readonly got: string; readonly expected: string; readonly fix: string },
): PeriodicEvalError =>
  new PeriodicEvalError({ code: "config", where: file.where(path), path, isWritten: true, ...details });

/** Runs `make`, whose errors are about the value at `path` of a file, and name the place in what the value names. */
export const withPlace = <T>(file: ConfigFile, path: ValuePath, make: () => T | Promise<T>): Promise<T> =>
  placing(
    file,
    () => path,
    () => atOption({ where: path.join("."), path }, async () => make()),
  );

/** Runs `make`, whose errors are about the options at `path` of a file. */
export const withOptionPlace = <T>(
  file: ConfigFile,
  path: ValuePath,
  make: () => T | Promise<T>,
): Promise<T> => placing(file, (option) => [...path, ...option], make);

async function placing<T>(
  file: ConfigFile,
  pathOf: (option: ValuePath) => ValuePath,
  make: () => T | Promise<T>,
): Promise<T> {
  try {
    return await make();
  } catch (error) {
    throw atPlace(file, error, pathOf);
  }
}

type Options = Readonly<Record<string, unknown>>;

/** Keys of the `periodic_eval` block that name files or folders. */
const blockFiles = [
  "questions",
  "alignment_questions",
  "alignment_training_rows",
  "leakage_questions",
  "personas",
  "margin",
  "judge_cache",
  "baseline",
] as const;

/** Keys that name files in the objects of the block that turn an evaluation on. */
const objectFiles: Readonly<Record<string, readonly string[]>> = {
  forgetting: ["text"],
  refusal: ["questions"],
};

/** Keys of the block and of its entries that may also name a dataset on the hub. */
const datasetKeys = [
  "questions",
  "alignment_questions",
  "alignment_training_rows",
  "leakage_questions",
  "personas",
  "margin",
  "text",
  "data",
  "fewshot_pool",
];

/** Whether the value at a path in a file may be a file or a dataset on the hub. */
const mayNameDataset = (path: ValuePath): boolean => datasetKeys.includes(String(path.at(-1)));

/** Options of loggers that name files or folders. */
const loggerFiles = ["path", "logDir", "runDir"];

/** Resolves a path that is written at `at` in a file. */
export const resolvePath = (file: ConfigFile, at: ValuePath, path: string): string =>
  resolve(file.folderOf(at), path);

/** Resolves a source of rows: a path, or a dataset on the Hub (`hf:`). */
export const resolveSource = (file: ConfigFile, at: ValuePath, source: string): string =>
  isHubSource(source) ? source : resolvePath(file, at, source);

/** Resolves a model: an existing folder, otherwise owner/name on the Hub. A leading dot or slash always means a folder. */
export const resolveModel = (file: ConfigFile, at: ValuePath, source: string): string =>
  resolveModelPath(source, (path) => resolvePath(file, at, path));

/** Returns a logger's options with absolute paths. */
export const resolveLoggerPaths = (file: ConfigFile, at: ValuePath, options: Options): Options =>
  resolvePaths(file, at, options, loggerFiles);

/** Returns the `periodic_eval` block at `at` with absolute paths, also in its `phases`. */
export function resolveBlockPaths(file: ConfigFile, at: ValuePath, block: Options): Options {
  const { phases } = block;
  const resolved = resolveBlockLevel(file, at, block);
  if (!isRecord(phases)) return resolved;
  const resolvedPhases = Object.entries(phases).map(([name, phase]) => [
    name,
    isRecord(phase) ? resolveBlockLevel(file, [...at, "phases", name], phase) : phase,
  ]);
  return { ...resolved, phases: Object.fromEntries(resolvedPhases) };
}

function resolveBlockLevel(file: ConfigFile, at: ValuePath, block: Options) {
  const { evaluations, ...resolvedFiles } = resolvePaths(file, at, block, blockFiles);
  const { judge_model: judge, judge_models: judges } = block;
  const resolveJudge = (name: unknown, key: ValuePath): unknown =>
    typeof name === "string"
      ? resolveJudgePath(name, (path) => resolvePath(file, [...at, ...key], path))
      : name;
  const objects = Object.entries(objectFiles).flatMap(([key, names]) => {
    const object = block[key];
    if (!isRecord(object)) return [];
    const { judge_model: judgeModel } = object;
    const resolved = {
      ...resolvePaths(file, [...at, key], object, names),
      ...(judgeModel !== undefined && { judge_model: resolveJudge(judgeModel, [key, "judge_model"]) }),
    };
    return [[key, resolved] as const];
  });
  const rest = {
    ...resolvedFiles,
    ...Object.fromEntries(objects),
    ...(judge !== undefined && { judge_model: resolveJudge(judge, ["judge_model"]) }),
    ...(Array.isArray(judges) && {
      judge_models: judges.map((name: unknown, i) => resolveJudge(name, ["judge_models", i])),
    }),
  };
  if (evaluations === undefined) return rest;
  const resolved = Array.isArray(evaluations)
    ? (evaluations as readonly unknown[]).map((entry, i) =>
        isRecord(entry)
          ? resolveEntryPaths(entry, (path, key) =>
              resolvePath(file, [...at, "evaluations", i, ...key], path),
            )
          : entry,
      )
    : evaluations;
  return { ...rest, evaluations: resolved };
}

const resolvePaths = (file: ConfigFile, at: ValuePath, options: Options, keys: readonly string[]) =>
  Object.fromEntries(
    Object.entries(options).map(([key, value]) => [
      key,
      keys.includes(key) && typeof value === "string" && isPath(key, value)
        ? resolvePath(file, [...at, key], value)
        : value,
    ]),
  );

/**
 * A baseline without a separator is a keyword: as a path, a misspelt keyword would be reported as a missing folder. Rows may
 * be a dataset on the Hub (`hf:`), alignment questions published ones.
 */
const isPath = (key: string, value: string): boolean => {
  if (value === "") return false;
  if (key === "baseline") return /[\\/]/.test(value);
  if (key === "alignment_questions" && isPublishedQuestions(value)) return false;
  return !isHubSource(value);
};

/**
 * Throws the given errors, the first of each place: nothing for an empty list, one error as it is, several as an AggregateError
 * that is never nested. An error that is not a PeriodicEvalError is thrown alone.
 */
export function throwAll(errors: readonly unknown[]): void {
  const flat = errors.flatMap((error) =>
    error instanceof AggregateError ? (error.errors as readonly unknown[]) : [error],
  );
  const foreign = flat.find((error) => !PeriodicEvalError.is(error));
  if (foreign !== undefined) throw foreign;
  const places = flat.map((error) => (error as PeriodicEvalError).where);
  const [first, ...rest] = flat.filter((_, at) => places.indexOf(places[at]!) === at);
  if (first === undefined) return;
  if (rest.length === 0) throw first;
  throw new AggregateError([first, ...rest], [first, ...rest].map(errorMessage).join("\n"));
}

/** Waits for all promises and returns their values. If some fail, throws all of their errors once every promise has settled. */
export async function awaitAll<const T extends readonly unknown[]>(
  promises: T,
): Promise<{ -readonly [I in keyof T]: Awaited<T[I]> }> {
  const settled = await Promise.allSettled(promises);
  throwAll(settled.flatMap((result) => (result.status === "rejected" ? [result.reason as unknown] : [])));
  return Promise.all(promises);
}

/** Runs a check and returns what it throws: a list of one error, or an empty list. */
export function errorsOf(check: () => void): readonly unknown[] {
  try {
    check();
    return [];
  } catch (error) {
    return [error];
  }
}

export interface EvalBlock {
  readonly file: ConfigFile;
  /** Path of the block in the file. */
  readonly at: ValuePath;
  /** The block with absolute paths. A value that is not an object is returned as it is, for core to report. */
  readonly block: unknown;
}

/** Keys under which a file may hold the block. */
const possiblePaths: readonly ValuePath[] = [["eval", "periodic_eval"], ["periodic_eval"]];

/** Returns the paths of the `periodic_eval` blocks in a file. An empty list means that the file itself may be the block. */
export const blockPaths = ({ value }: ConfigFile): readonly ValuePath[] =>
  possiblePaths.filter((path) => valueAt(value, path) !== undefined);

/** Says that a training file measures nothing. */
export const noBlockText = (path: string): string =>
  `${path} has no periodic_eval block: nothing is measured. Add \`periodic_eval: {}\` to measure capability.`;

/** Whether a file describes a training, and not just a `periodic_eval` block, whose `phases` is a map. */
export const isTrainingFile = ({ value }: ConfigFile): boolean =>
  isRecord(value) && Array.isArray(value["phases"]);

/** Returns the names of the phases of a training file; none for another file. */
export const phaseNames = (file: ConfigFile): readonly string[] =>
  isTrainingFile(file)
    ? (valueAt(file.value, ["phases"]) as readonly unknown[]).flatMap((phase) =>
        isRecord(phase) && typeof phase["phase"] === "string" ? [phase["phase"]] : [],
      )
    : [];

/** @throws PeriodicEvalError `config` if the file has two blocks. */
export function refuseTwoBlocks(file: ConfigFile): void {
  const [path, other] = blockPaths(file);
  if (path === undefined || other === undefined) return;
  throw fileError(file, other, {
    got: `a second block next to ${path.join(".")}`,
    expected: "only one of the two",
    fix: "Merge both blocks into one.",
  });
}

/**
 * Reads the `periodic_eval` block of a file as `train` does: relative paths are relative to the file.
 *
 * @throws PeriodicEvalError `config` with file and line if the file is not YAML or has two blocks.
 */
export async function readEvalBlock(path: string): Promise<EvalBlock> {
  const file = await readConfigFile(path);
  refuseTwoBlocks(file);
  const at = blockPaths(file)[0] ?? [];
  const block = valueAt(file.value, at);
  return { file, at, block: isRecord(block) ? resolveBlockPaths(file, at, block) : block };
}
