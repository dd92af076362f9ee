/**
 * Visits the structural characters of a JSON text, those outside of strings, without recursion and before the text is parsed.
 * Deeply nested JSON exhausts the stack of most code that reads it; a visitor can refuse it first. Does not check that the
 * text is valid JSON.
 *
 * @param visit Receives each of `{ [ ] } :` and the number of open arrays and objects around it. Returns false to stop.
 */
export function walkJson(json: string, visit: (sign: string, level: number) => boolean): void {
  let level = 0;
  let inString = false;
  for (let i = 0; i < json.length; i++) {
    const sign = json[i]!;
    if (inString) {
      if (sign === "\\") i += 1;
      else if (sign === '"') inString = false;
    } else if (sign === '"') inString = true;
    else if (sign === "{" || sign === "[") {
      if (!visit(sign, level)) return;
      level += 1;
    } else if (sign === "]" || sign === "}") {
      level -= 1;
      if (!visit(sign, level)) return;
    } else if (sign === ":" && !visit(sign, level)) return;
  }
}

/** Whether arrays and objects of a JSON text nest deeper than `limit` levels. */
export function isDeeperThan(limit: number, json: string): boolean {
  let isDeeper = false;
  walkJson(json, (sign, level) => {
    isDeeper = level >= limit && (sign === "{" || sign === "[");
    return !isDeeper;
  });
  return isDeeper;
}
