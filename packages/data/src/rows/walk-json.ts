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

/**
 * Before a number that became a string, or an integer-like key: a noncharacter of Unicode, which text for interchange does not
 * contain. JavaScript reads `1.0` as 1, loses digits of large integers and puts integer-like keys first. Chat templates get what
 * Python reads: `fromJson` of the interpreter decodes the marks.
 */
const mark = "\uFDD9";

/**
 * Marks what JavaScript reads otherwise than Python in a JSON text: floats without a fraction, integers beyond 2⁵³ − 1, and
 * integer-like keys.
 *
 * @param json A string that `JSON.parse` accepts.
 */
export const markNumbers = (json: string): string =>
  mapJson(
    json,
    (between) =>
      between.replaceAll(/-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?/g, (token) =>
        isLost(token) ? `"${mark}${token}"` : token,
      ),
    (quoted) => (isIndex(unquoted(quoted)) ? `"${mark}${unquoted(quoted)}"` : quoted),
  );

const isLost = (literal: string): boolean =>
  /[.eE]/.test(literal) ? Number.isInteger(Number(literal)) : !Number.isSafeInteger(Number(literal));

/** Whether JavaScript's objects list a key before others. */
const isIndex = (key: string): boolean => /^(?:0|[1-9]\d{0,9})$/.test(key) && Number(key) < 2 ** 32 - 1;

/** Returns a key of an object, with a mark if it is integer-like. */
export const markedKey = (key: string): string => (isIndex(key) ? mark + key : key);

/** Marks a float without a fraction. */
export function markedFloat(value: number): string {
  const digits = Object.is(value, -0) ? "-0" : String(value);
  return mark + (digits.includes("e") ? digits : `${digits}.0`);
}

/** Whether a value is a marked number. */
export const isMarkedNumber = (value: unknown): value is string =>
  typeof value === "string" && /^\uFDD9-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?$/.test(value);

export const withoutMark = (text: string): string => (text.startsWith(mark) ? text.slice(1) : text);

/** Returns the first marked number or key in a text or in JSON, without its mark; null if there is none. */
export const findMarked = (text: string): string | null =>
  /(?:\uFDD9|\\ufdd9)(-?\d[-+.\deE]*)/i.exec(text)?.[1] ?? null;

/**
 * Visits the strings and structural characters of a JSON text. Does not check that the text is valid JSON.
 *
 * @param visit Receives each of `{ [ ] } :` outside of strings, and `"` for a string; the number of open arrays and objects
 *   around it; and the index of its first character and the one after its last. Returns false to stop.
 */
export function walkJson(
  json: string,
  visit: (sign: string, level: number, at: number, end: number) => boolean,
): void {
  const signs = /["{}[\]:]/g;
  let level = 0;
  for (let match = signs.exec(json); match !== null; match = signs.exec(json)) {
    const [sign] = match;
    const at = match.index;
    if (sign === '"') signs.lastIndex = endOfString(json, at);
    if (sign === "]" || sign === "}") level -= 1;
    if (!visit(sign, level, at, signs.lastIndex)) return;
    if (sign === "{" || sign === "[") level += 1;
  }
}

/** Returns the index after the quote that ends the string which begins at `from`, or after the text if none does. */
function endOfString(json: string, from: number): number {
  for (let end = json.indexOf('"', from + 1); end !== -1; end = json.indexOf('"', end + 1)) {
    let slashes = 0;
    while (json[end - 1 - slashes] === "\\") slashes++;
    if (slashes % 2 === 0) return end + 1;
  }
  return json.length;
}

/** Whether arrays or objects of a line do not end in it. */
export function isOpenJson(line: string): boolean {
  let open = 0;
  walkJson(line, (sign, level) => {
    open = sign === "{" || sign === "[" ? level + 1 : level;
    return true;
  });
  return open > 0;
}

/**
 * Returns the first key that occurs twice in one object, or null. `JSON.parse` keeps only the last value of such a key.
 *
 * @param json A string that `JSON.parse` accepts.
 */
export function repeatedKey(json: string): string | null {
  /** The keys of the objects around the position, by depth. */
  const keys: Set<string>[] = [];
  let quoted: readonly [number, number] = [0, 0];
  let repeated: string | null = null;
  walkJson(json, (sign, level, at, end) => {
    if (sign === '"') quoted = [at, end];
    else if (sign === "{") (keys[level] ??= new Set()).clear();
    else if (sign === ":") {
      const key = unquoted(json.slice(...quoted));
      const seen = keys[level - 1]!;
      if (seen.has(key)) repeated = key;
      seen.add(key);
    }
    return repeated === null;
  });
  return repeated;
}

/** Returns the text of a JSON string. */
const unquoted = (quoted: string): string =>
  quoted.includes("\\") ? (JSON.parse(quoted) as string) : quoted.slice(1, -1);

/** Returns a JSON text with changed text between its strings, and changed keys, which are passed with their quotes. */
function mapJson(
  json: string,
  mapBetween: (text: string) => string,
  mapKey = (quoted: string): string => quoted,
): string {
  let result = "";
  let quoted = "";
  let from = 0;
  walkJson(json, (sign, _, at, end) => {
    if (sign === '"') {
      result += quoted + mapBetween(json.slice(from, at));
      quoted = json.slice(at, end);
      from = end;
    } else if (sign === ":") quoted = mapKey(quoted);
    return true;
  });
  return result + quoted + mapBetween(json.slice(from));
}
