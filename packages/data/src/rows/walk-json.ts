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
export const unquoted = (quoted: string): string =>
  quoted.includes("\\") ? (JSON.parse(quoted) as string) : quoted.slice(1, -1);

/** Returns a JSON text with changed text between its strings, and changed keys, which are passed with their quotes. */
export function mapJson(
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
