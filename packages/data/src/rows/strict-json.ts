import { errorMessage, abbreviated, quoteValue } from "@periodic-eval/contracts/options";
import { repeatedKey } from "./walk-json.ts";

/** Why a string is refused, in the words of an error. */
export interface JsonFault {
  readonly got: string;
  readonly expected: string;
  readonly fix: string;
  /** The error of `JSON.parse`; absent for JSON that is refused for a repeated key. */
  readonly cause?: unknown;
}

/** Parses JSON that has no key twice in one object. */
export function strictJson(
  text: string,
  parse: (text: string) => unknown = JSON.parse,
): { readonly value: unknown; readonly fault: null } | { readonly fault: JsonFault } {
  let value: unknown;
  try {
    value = parse(text);
  } catch (cause) {
    const got = text.trim() === "" ? "an empty text" : `invalid JSON (${errorMessage(cause)})`;
    return { fault: { got, expected: "JSON", fix: "Correct the JSON.", cause } };
  }
  const key = repeatedKey(text);
  if (key === null) return { value, fault: null };
  const got = `the key ${abbreviated(quoteValue(key))} twice in one object`;
  return { fault: { got, expected: "keys that differ", fix: "Remove or rename one." } };
}
