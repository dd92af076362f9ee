import type { PeriodicEvalError, ValuePath } from "../errors.ts";
import { changedError } from "./changed-error.ts";
import { isNotCached, respelt } from "./source-option.ts";

/** `maxNewTokens` → `max_new_tokens`. */
export const snakeCase = (name: string): string =>
  name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

/**
 * Returns an error about an option of code as one about the key of an entry in YAML that sets it: `sampling.maxNewTokens` is
 * `max_new_tokens` there, `subsample.n` is `subsample_n`. An error about a source is about the key that names it; about the entry, if
 * the source is a default. Other errors stay as they are, with the entry's place before theirs.
 *
 * @param place Names the entry: `periodic_eval.evaluations[0]`.
 * @param path The entry's path.
 */
export function atWrittenKey(
  error: PeriodicEvalError,
  entry: Readonly<Record<string, unknown>>,
  { place, path }: { readonly place: string; readonly path: ValuePath },
): PeriodicEvalError {
  const { detail } = error;
  const option = detail?.kind === "option" || detail?.kind === "not-cached" ? detail.option : null;
  if (option?.name != null && error.where.startsWith(option.where)) {
    const key = snakeCase(option.name);
    const keys = key in entry ? [key] : [];
    const where = [place, ...keys].join(".") + error.where.slice(option.where.length);
    const spelt = isNotCached(error) ? respelt(error, [`${key}: FILE`]) : error;
    return changedError(spelt, { where, path: [...path, ...keys], cause: error });
  }
  const names = error.path.map((key) => (typeof key === "string" ? snakeCase(key) : null));
  const own = names.findIndex((name) => name === null);
  const keys = names.slice(0, own < 0 ? names.length : own);
  // For `sampling.maxNewTokens`, the entry may have `sampling`, `sampling_max_new_tokens` or `max_new_tokens`.
  for (const from of keys.keys())
    for (let to = keys.length; to > from; to -= 1) {
      const key = keys.slice(from, to).join("_");
      const written = [key, key.replace("max_new_tokens", "max_tokens")].find((one) => one in entry);
      if (written === undefined || error.where.startsWith(place)) continue;
      const rest = error.path.slice(to).map((one) => (typeof one === "string" ? snakeCase(one) : one));
      const where = [place, written, ...rest].join(".");
      return changedError(error, {
        where,
        path: [...path, written, ...rest],
        got: inYaml(error.got, error.path),
        expected: keysInYaml(error.expected, /\b[a-z]+[A-Z]\w*(?=[^"]*(?:"[^"]*"[^"]*)*$)/g),
        fix: inYaml(keysInYaml(error.fix, /`[a-z]+[A-Z]\w*`/g), error.path),
        cause: error,
      });
    }
  const where = error.where.startsWith(place) ? error.where : `${place}, ${error.where}`;
  return changedError(error, { where, path: [...path, ...error.path], cause: error });
}

/** Spells the options of a path in a text as YAML does. */
const inYaml = (text: string, path: ValuePath): string =>
  path.reduce<string>(
    (spelt, key) =>
      typeof key === "string" && /[A-Z]/.test(key)
        ? spelt.replaceAll(new RegExp(`\\b${key}\\b`, "g"), snakeCase(key))
        : spelt,
    text,
  );

/** Spells names in a text as YAML does. */
const keysInYaml = (text: string, names: RegExp): string => text.replaceAll(names, snakeCase);
