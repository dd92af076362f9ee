import { errorMessage } from "./error-message.ts";
import { abbreviated, quoteValue } from "./quote-value.ts";
import { isDeeperThan, repeatedKey } from "./walk-json.ts";

/** Maximum nesting of JSON and YAML. Deeper values overflow the stack of recursive readers. */
export const maximumDepth = 400;

/** Why a string is refused, in the words of an error. */
export interface JsonFault {
  readonly got: string;
  readonly expected: string;
  readonly fix: string;
  /** The error of `JSON.parse`; absent for JSON that is refused for its depth or a repeated key. */
  readonly cause?: unknown;
}

/** Parses JSON that nests at most 400 levels deep and has no key twice in one object. */
export function strictJson(
  text: string,
  parse: (text: string) => unknown = JSON.parse,
): { readonly value: unknown; readonly fault: null } | { readonly fault: JsonFault } {
  const refused = (got: string, expected: string, fix: string) => ({ fault: { got, expected, fix } });
  if (isDeeperThan(maximumDepth, text))
    return refused(
      `values nested deeper than ${maximumDepth} levels`,
      `at most ${maximumDepth} levels`,
      "Nest fewer values.",
    );
  let value: unknown;
  try {
    value = parse(text);
  } catch (cause) {
    const got = text.trim() === "" ? "an empty text" : `invalid JSON (${errorMessage(cause)})`;
    return { fault: { got, expected: "JSON", fix: "Correct the JSON.", cause } };
  }
  const key = repeatedKey(text);
  if (key === null) return { value, fault: null };
  return refused(
    `the key ${abbreviated(quoteValue(key))} twice in one object`,
    "keys that differ",
    "Remove or rename one.",
  );
}
