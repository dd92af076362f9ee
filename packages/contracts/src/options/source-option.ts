import { PeriodicEvalError, type ErrorDetail, type SourceOption } from "../errors.ts";
import { changedError } from "./changed-error.ts";

/** Returns an option of code that names a source: `codeOption("margin", "probes")`. */
export const codeOption = (label: string, name: string): SourceOption => ({
  where: `${label} options.${name}`,
  name,
  spellings: [`{ ${name}: "FILE" }`],
});

/** Returns a key of a YAML object that names a source. */
export const yamlOption = (place: string, name: string): SourceOption => ({
  where: `${place}.${name}`,
  name,
  spellings: [`${name}: FILE`],
});

/** Returns the place of a command that downloads, and thus reads no file. */
export const downloadOption = (where: string): SourceOption => ({ where, name: null, spellings: null });

/** Completes an option of which only the place is known. */
export const optionAt = (option: SourceOption | string): SourceOption =>
  typeof option === "string" ? { where: option, name: null, spellings: [] } : option;

/** Runs `read`. Its errors are about the option, not about the content of the source. */
export async function atOption<T>(option: SourceOption | string, read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (error) {
    if (!PeriodicEvalError.is(error) || error.detail) throw error;
    throw changedError(error, { detail: { kind: "option", option: optionAt(option) } });
  }
}

export type NotCached = Extract<ErrorDetail, { readonly kind: "not-cached" }>;

/** Whether `fetchSplit` threw because the cache lacks a dataset and there is no network. */
export const isNotCached = (error: unknown): error is PeriodicEvalError & { readonly detail: NotCached } =>
  PeriodicEvalError.is(error) && error.detail?.kind === "not-cached";

/** Returns the error with other spellings of a file. */
export function respelt(
  error: PeriodicEvalError & { readonly detail: NotCached },
  spellings: readonly string[],
): PeriodicEvalError {
  const detail = { ...error.detail, option: { ...error.detail.option, spellings } };
  return changedError(error, { detail, fix: notCachedFix(detail) });
}

/** Returns the remedies for a dataset that is neither in the cache nor available. */
export function notCachedFix({ option: { spellings }, download, otherwise }: NotCached): string {
  // The command that downloads would fail again, and takes no file.
  if (spellings === null) return `${otherwise[0]!.toUpperCase()}${otherwise.slice(1)}.`;
  const file = `Name the path of a file${spellings.length === 0 ? "" : `: ${spellings.join(", ")}`}`;
  return `${file}; ${download} writes one on a machine with network. Or ${otherwise}.`;
}
