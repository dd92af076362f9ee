import { endOfString } from "./repeated-key.ts";

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
    const json = withoutPythonNumbers(text);
    if (json === null) throw error;
    return JSON.parse(json, (_, value: unknown) => (value === marker ? Number.NaN : value));
  }
}

/** Returns the text with JSON in place of these numbers outside of strings; null if there are none. */
function withoutPythonNumbers(text: string): string | null {
  let json = "";
  for (let at = 0; at < text.length;) {
    const quote = text.indexOf('"', at);
    const between = quote === -1 ? text.slice(at) : text.slice(at, quote);
    // A JSON number this large is parsed as Infinity.
    json += between.replaceAll(/\bInfinity\b/g, "1e999").replaceAll(/\bNaN\b/g, JSON.stringify(marker));
    if (quote === -1) break;
    const end = endOfString(text, quote);
    if (end === -1) return null;
    json += text.slice(quote, end + 1);
    at = end + 1;
  }
  return json === text ? null : json;
}
