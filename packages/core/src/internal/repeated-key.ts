const [quote, colon, backslash, open, close] = [0x22, 0x3a, 0x5c, 0x7b, 0x7d];

/**
 * Returns the first key that occurs twice in one object, or null. `JSON.parse` keeps only the last value of such a key. One pass,
 * which skips the content of strings.
 *
 * @param json A string that `JSON.parse` accepts.
 */
export function repeatedKey(json: string): string | null {
  /** The keys of the objects around the position, by depth. */
  const keys: Set<string>[] = [];
  let depth = -1;
  for (let at = 0; at < json.length; at++) {
    const code = json.charCodeAt(at);
    if (code === close) depth--;
    else if (code === open) (keys[++depth] ??= new Set()).clear();
    else if (code === quote) {
      const end = endOfString(json, at);
      let next = end + 1;
      while (json.charCodeAt(next) <= 0x20) next++;
      if (json.charCodeAt(next) === colon) {
        const written = json.slice(at + 1, end);
        const key = written.includes("\\") ? (JSON.parse(`"${written}"`) as string) : written;
        const seen = keys[depth]!;
        if (seen.has(key)) return key;
        seen.add(key);
      }
      at = end;
    }
  }
  return null;
}

/** Returns the index of the quote that ends the string which begins at `from`; -1 if none does. */
export function endOfString(json: string, from: number): number {
  for (let end = json.indexOf('"', from + 1); ; end = json.indexOf('"', end + 1)) {
    if (end === -1) return -1;
    let slashes = 0;
    while (json.charCodeAt(end - 1 - slashes) === backslash) slashes++;
    if (slashes % 2 === 0) return end;
  }
}
