import {
  PeriodicEvalError,
  type ErrorDetail,
  type ErrorDetails,
  type SourceOption,
  type ValuePath,
} from "../errors.ts";
import { pathText } from "./config-error.ts";
import { errorMessage } from "./messages.ts";

/** An object that a user wrote: a file, a block or an entry of it, the flags of a command. */
export interface Written {
  /** Names the place of a path: `train.yaml:12 lora.rank`. */
  where(path: ValuePath): string;
  /** Names these options in an error about them as a whole: `periodic_eval`. */
  readonly root?: string;
  /** Returns the path at which an option is written, or would be; null if it cannot be written here. */
  pathOf(option: ValuePath): ValuePath | null;
  /** Returns the key for an option, which messages name; null if there is none. Default: options keep their names. */
  nameOf?(option: string): string | null;
}

/** Returns an error about the options of a function as one about what the user wrote. Other errors stay as they are. */
export const atWritten = (error: unknown, written: Written): unknown =>
  mapErrors(error, (cause) => {
    const path = written.pathOf(cause.path);
    if (path === null) return cause;
    const place = written.where(path);
    const isAbout = cause.path.length > 0 || cause.where === place || cause.where === written.root;
    const inside = isAbout ? cause.inside : cause.where;
    const where = inside === null ? place : `${place}, ${inside}`;
    // A missing key of YAML is not JavaScript's undefined.
    const wrong = cause.got === "undefined" ? "nothing" : cause.got;
    const [got, expected, fix] = [wrong, cause.expected, cause.fix].map((text) => respelt(text, written));
    return changedError(cause, {
      where,
      path,
      inside,
      got: got!,
      expected: expected!,
      fix: fix!,
      isWritten: true,
      cause,
    });
  });

/** Runs `make`, whose errors are about what the user wrote. */
export async function fromWritten<T>(written: Written, make: () => T | Promise<T>): Promise<T> {
  try {
    return await make();
  } catch (error) {
    throw atWritten(error, written);
  }
}

/** Returns the options of a function that stand at `path` of `root`: `periodicEval` of `SFTTrainer options`. */
export const optionsAt = (root: string, path: ValuePath): Written => ({
  where: (full) => `${root}${pathText(full)}`,
  pathOf: (option) => [...path, ...option],
});

/**
 * Returns an entry of a list or a map of evaluations, whose keys are options in snake case: `sampling.maxNewTokens` is
 * `max_new_tokens` or `max_tokens` there, `subsample.n` is `subsample_n`.
 *
 * @param place Names the entry: `periodic_eval.evaluations[0]`.
 * @param path The entry's path.
 */
export const entryAt = (entry: object, place: string, path: ValuePath): Written => ({
  where: (full) => `${place}${pathText(full.slice(path.length))}`,
  pathOf(option) {
    const keys = option.map((key) => (typeof key === "string" ? snakeCase(key) : key));
    for (const from of keys.keys())
      for (let to = keys.length; to > from; to -= 1) {
        const key = keys.slice(from, to).join("_");
        const written = [key, key.replace("max_new_tokens", "max_tokens")].find((name) => name in entry);
        if (written !== undefined) return [...path, written, ...keys.slice(to)];
      }
    return [...path, ...keys];
  },
  nameOf: snakeCase,
});

/** Does the same for a check that is not asynchronous. */
export function checked<T>(written: Written, check: () => T): T {
  try {
    return check();
  } catch (error) {
    throw atWritten(error, written);
  }
}

/** Spells the options that a message names, in backticks or in camel case outside of quotes, as the user does. */
const respelt = (text: string, { nameOf }: Written): string =>
  nameOf === undefined
    ? text
    : text.replaceAll(
        // A segment of a path is no option.
        /"[^"]*"|(`?)(?<![-/])\b([a-z]+(?:[A-Z][a-z]+)+|(?<=`)[a-z]\w*)\b(?!\/)/g,
        (word, tick = "", name = "") => (name === "" ? word : tick + (nameOf(name) ?? name)),
      );

/** Returns a copy of an error with some details replaced. */
export function changedError(error: PeriodicEvalError, changes: Partial<ErrorDetails>): PeriodicEvalError {
  return new PeriodicEvalError({ ...error, cause: error.cause, ...changes });
}

/** Returns a PeriodicEvalError, and each of an AggregateError, changed; any other error as it is. */
function mapErrors(error: unknown, change: (error: PeriodicEvalError) => PeriodicEvalError): unknown {
  if (PeriodicEvalError.is(error)) return change(error);
  if (!(error instanceof AggregateError)) return error;
  const errors = (error.errors as readonly unknown[]).map((inner) => mapErrors(inner, change));
  return new AggregateError(errors, errors.map(errorMessage).join("\n"));
}

/** `maxNewTokens` → `max_new_tokens`. */
export const snakeCase = (name: string): string =>
  name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

/** `max_new_tokens` → `maxNewTokens`. */
export const camelCase = (name: string): string =>
  name.replaceAll(/_[a-z]/g, (part) => part[1]!.toUpperCase());

/** Returns an object with its keys in camel case, without undefined values. */
export const camelCaseKeys = (object: object): Readonly<Record<string, unknown>> =>
  Object.fromEntries(
    Object.entries(object).flatMap(([name, value]) =>
      value === undefined ? [] : [[camelCase(name), value as unknown] as const],
    ),
  );

/** Returns a key of an object in YAML that names a source. */
export const yamlOption = (place: string, name: string): SourceOption => ({
  where: `${place}.${name}`,
  path: [name],
});

/** Returns an option of code that names a source: `codeOption("margin", "probes")`. */
export const codeOption = (label: string, name: string): SourceOption => yamlOption(`${label} options`, name);

/** Completes an option of which only the place is known. */
export const optionAt = (option: SourceOption | string): SourceOption =>
  typeof option === "string" ? { where: option, path: [] } : option;

/** Returns an error of reading the source that an option names as one with the option's path. Errors of other options stay as they are. */
export const aboutOption = (error: unknown, option: SourceOption | string): unknown =>
  mapErrors(error, (cause) => {
    const { where, path } = optionAt(option);
    if (path.length === 0 || (cause.code === "config" && cause.path.length > 0)) return cause;
    const rest = cause.where.startsWith(`${where}, `) ? cause.where.slice(where.length + 2) : cause.where;
    return changedError(cause, { path, inside: cause.where === where ? null : rest });
  });

/** Runs `read`, which reads the source that an option names. */
export async function atOption<T>(option: SourceOption | string, read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (error) {
    throw aboutOption(error, option);
  }
}

type NotCached = PeriodicEvalError & {
  readonly detail: Extract<ErrorDetail, { readonly kind: "not-cached" }>;
};

/** Whether `fetchSplit` threw because the cache lacks a dataset and there is no network. */
export const isNotCached = (error: unknown): error is NotCached =>
  PeriodicEvalError.is(error) && error.detail?.kind === "not-cached";
