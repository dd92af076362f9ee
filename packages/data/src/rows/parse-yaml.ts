import {
  isAlias,
  isNode,
  isScalar,
  LineCounter,
  parseDocument,
  visit,
  YAMLParseError,
  type Document,
  type Node,
} from "yaml";

/**
 * Parses YAML, and finds repeated keys in linear time: the library compares each key of a map with every other.
 *
 * `errors` of the result contains the errors and warnings of the library, and what it would change in silence: keys that are equal
 * as strings, keys that are no scalars, aliases of values that contain them, tags, and numbers and strings that JSON or UTF-8
 * cannot hold.
 */
export function parseYaml(
  text: string,
  lineCounter = new LineCounter(),
  options: { readonly merge: boolean } = { merge: true },
): Document.Parsed {
  // Pretty errors would copy a line for each error.
  const document = parseDocument(text, {
    ...options,
    lineCounter,
    uniqueKeys: false,
    prettyErrors: false,
    resolveKnownTags: false,
  });
  document.errors.push(...document.warnings);
  if (document.errors.length === 0) {
    const fault = faultOf(document);
    if (fault !== null) document.errors.push(fault);
  }
  return document;
}

/** Returns the first part of a document that would be lost or changed as JSON; null if none. */
function faultOf(document: Document.Parsed): YAMLParseError | null {
  let found: YAMLParseError | null = null;
  const fail = (node: { readonly range?: readonly number[] | null | undefined }, message: string) => {
    found = yamlError(node.range?.[0] ?? 0, message);
    return visit.BREAK;
  };
  visit(document, {
    Node(_key, node, ancestors) {
      if (
        isAlias(node) &&
        ancestors.some((one) => isNode(one) && !isAlias(one) && one.anchor === node.source)
      )
        return fail(node, `the alias *${node.source} in its own value`);
      if (isScalar(node) && /\p{Surrogate}/u.test(String(node.value)))
        return fail(node, "half of a surrogate pair");
      if (!isScalar(node) || typeof node.value !== "number") return undefined;
      const isExact =
        Number.isFinite(node.value) &&
        (Number.isSafeInteger(node.value) || !/^[-+]?\d+$/.test(node.source ?? ""));
      return isExact ? undefined : fail(node, `the number ${node.source}, which JSON cannot hold`);
    },
    Map(_key, { items, range }) {
      const seen = new Set<string>();
      for (const { key } of items) {
        if (!isScalar<string | number | boolean | bigint | symbol | null>(key))
          return fail((key as Node | null) ?? { range: range ?? null }, "a key that is not a string");
        const name = String(key.value ?? "");
        if (seen.has(name)) return fail(key, "Map keys must be unique");
        seen.add(name);
      }
      return undefined;
    },
  });
  return found;
}

const yamlError = (at: number, message: string): YAMLParseError =>
  new YAMLParseError([at, at + 1], "IMPOSSIBLE", message);
