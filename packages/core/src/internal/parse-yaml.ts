import { isScalar, LineCounter, parseDocument, visit, YAMLParseError, type Document } from "yaml";

/**
 * Parses YAML in time proportional to its length: to find repeated keys, the library compares each key of a map with every
 * other. `errors` of the result contains a repeated key and the errors of the library.
 */
export function parseYaml(
  text: string,
  lineCounter = new LineCounter(),
  options: { readonly merge: boolean } = { merge: true },
): Document.Parsed {
  const document = parseDocument(text, { ...options, lineCounter, uniqueKeys: false });
  if (document.errors.length > 0) return document;
  visit(document, {
    Map(_key, { items }) {
      const seen = new Set<unknown>();
      for (const { key } of items) {
        if (!isScalar(key)) continue;
        if (seen.has(key.value)) {
          document.errors.push(repeatedKey(key.range ?? [0, 0], lineCounter));
          return visit.BREAK;
        }
        seen.add(key.value);
      }
      return undefined;
    },
  });
  return document;
}

function repeatedKey(
  [start, end]: readonly [number, number, ...number[]],
  lines: LineCounter,
): YAMLParseError {
  const { line, col } = lines.linePos(start);
  const message = `Map keys must be unique at line ${line}, column ${col}:`;
  const error = new YAMLParseError([start, end], "DUPLICATE_KEY", message);
  error.linePos = [{ line, col }];
  return error;
}
