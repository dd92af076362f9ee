import { mapJson } from "./walk-json.ts";

/** Stands for NaN, which no JSON number is, until the text is parsed. */
const marker = "\u0000NaN";

/**
 * Parses JSON that may hold NaN, Infinity and -Infinity, which Python's `json` and pandas write.
 *
 * @throws SyntaxError as `JSON.parse`.
 */
export function parsePythonJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    // A JSON number this large is parsed as Infinity.
    const json = mapJson(text, (between) =>
      between.replaceAll(/\bInfinity\b/g, "1e999").replaceAll(/\bNaN\b/g, JSON.stringify(marker)),
    );
    if (json === text) throw error;
    return JSON.parse(json, (_, value: unknown) => (value === marker ? Number.NaN : value));
  }
}
