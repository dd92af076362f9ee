/** Returns an Error's message as a string, or any other thrown value as one. */
export function errorMessage(error: unknown): string {
  if (error instanceof Error) return String(error.message);
  return typeof error === "object" && error !== null ? quoteValue(error) : String(error);
}

/**
 * Returns a value as an error message quotes it: JSON, cut to `maxLength` characters. Also handles values that `JSON.stringify`
 * renders as `null` (NaN, Infinity), omits (functions, symbols) or throws for (a BigInt, a circular reference).
 */
export function quoteValue(value: unknown, maxLength = 200): string {
  if (typeof value === "number") return String(value);
  if (typeof value === "bigint") return `${value}n`;
  if (typeof value === "function") return "a function";
  const text = jsonOf(value);
  return text.length > maxLength ? `${text.slice(0, maxLength - 1)}…` : text;
}

function jsonOf(value: unknown): string {
  try {
    return JSON.stringify(value) ?? String(value);
  } catch {
    return "an object that JSON cannot represent";
  }
}

/** Shortens a string to `length` characters. */
export const abbreviated = (text: string, length = 60): string =>
  text.length > length ? `${text.slice(0, length - 3)}…` : text;

/** Shortens a message of a server or a model, of any length, for an error. */
export const shortMessage = (text: string): string => abbreviated(text, 300);

/** Returns a command of `periodic-eval` as errors name it. A project's own copy is found by npx only. */
export const command = (args: string): string => `\`npx periodic-eval ${args}\``;

/**
 * Returns how to get a dataset of the built-in tasks, as a sentence for errors.
 *
 * @param folder The data folder that the command writes to.
 */
export const downloadAdvice = (
  { name, source }: { readonly name: string; readonly source: string },
  folder = "FOLDER",
): string => `${command(`data get ${name} --out ${folder}`)} writes ${folder}/${name}; or name ${source}.`;

/** The `code` of an error that `useBackend` makes the wasm engine throw when an allocation fails. */
export const fullHeapCode = "ENGINE_OUT_OF_MEMORY";

/** Joins the remedies of a `memory` error to one sentence. */
export const joinRemedies = (remedies: readonly string[]): string => {
  const text =
    remedies.length === 0 ? "use smaller batches, or a machine with more memory" : remedies.join("; or ");
  return `${text[0]!.toUpperCase()}${text.slice(1)}.`;
};

/** Returns `3.41 GiB`, or `12.3 MiB` for less than 0.1 GiB. */
export function describeBytes(bytes: number): string {
  return bytes >= 0.1 * 2 ** 30
    ? `${(bytes / 2 ** 30).toFixed(2)} GiB`
    : `${(bytes / 2 ** 20).toFixed(1)} MiB`;
}

/** Quotes a path for the command lines that messages print, if it needs quotes. */
export const shellWord = (path: string): string => (/^[\w./:@%+~\\-]+$/.test(path) ? path : `"${path}"`);
