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
import { PeriodicEvalError, type ValuePath } from "@periodic-eval/contracts";
import { errorMessage } from "@periodic-eval/contracts/options";

/** A YAML or JSON text, and what it means. */
export interface YamlText {
  readonly value: unknown;
  readonly document: Document.Parsed;
  /** Returns the line of a part of the value; null if the part is missing. */
  lineOf(path: ValuePath): number | null;
}

/** More aliases of aliases fill the memory. */
const maximumAliases = 10_000;

/** Parts that contain a value: an object counts twice, itself and its key. The stack of the library ends at about 800. */
const maximumAncestors = 500;

/**
 * Parses YAML or JSON.
 *
 * @param file Names the text in errors.
 * @param code The code of the errors.
 * @throws PeriodicEvalError with the line of the first error.
 */
export function parseYamlText(text: string, file: string, code: "data" | "config" = "data"): YamlText {
  const lines = new LineCounter();
  const document = parseYaml(text, lines);
  const [fault] = document.errors;
  const lineOf = (path: ValuePath) => {
    const node: unknown = document.getIn(path, true);
    return isNode(node) && node.range ? lines.linePos(node.range[0]).line : null;
  };
  try {
    if (fault !== undefined) throw fault;
    // Aliased values become copies: changing one place does not change another.
    const value: unknown = document.toJS({ maxAliasCount: maximumAliases }) ?? null;
    return { value: JSON.parse(JSON.stringify(value)), document, lineOf };
  } catch (cause) {
    const got = errorMessage(cause).split("\n")[0]!;
    throw new PeriodicEvalError({
      code,
      where: fault === undefined ? file : `${file}:${lines.linePos(fault.pos[0]).line}`,
      got,
      ...remedyOf(fault?.code ?? null, got),
      cause,
      isWritten: code === "config",
    });
  }
}

function remedyOf(code: string | null, message: string): { readonly expected: string; readonly fix: string } {
  const expected = "YAML or JSON";
  if (message.startsWith(unresolvedAlias)) {
    const fix = "Correct the alias, and quote strings that start with * or &.";
    return { expected: "aliases (*name) of earlier anchors (&name)", fix };
  }
  if (message === tooDeep || message.startsWith("Maximum call stack"))
    return { expected, fix: "Nest fewer values." };
  if (code === "TAB_AS_INDENT") return { expected, fix: "Indent with spaces instead of tabs." };
  const isIndent =
    code === "BAD_INDENT" || code === "BLOCK_AS_IMPLICIT_KEY" || message.startsWith("Sequence item without");
  const fix = isIndent
    ? "Indent the keys of one object equally, and what belongs to a key by two more spaces; see also the next line."
    : "Correct the file at that line, and quote strings that contain a colon, a dash or a hash.";
  return { expected, fix };
}

const tooDeep = "values that are nested too deeply";

const unresolvedAlias = "Unresolved alias (the anchor must be set before the alias)";

/**
 * Parses YAML, and finds repeated keys in linear time: the library compares each key of a map with every other.
 *
 * `errors` of the result contains the errors and warnings of the library, and what it would change in silence: keys that are equal
 * as strings, keys that are no scalars, aliases without an earlier anchor or of values that contain them, tags, and numbers and
 * strings that JSON or UTF-8 cannot hold.
 */
export function parseYaml(text: string, lineCounter: LineCounter): Document.Parsed {
  // Pretty errors would copy a line for each error.
  const document = parseDocument(text, {
    merge: true,
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
  let fault: YAMLParseError | null = null;
  const anchors = new Set<string>();
  const fail = (node: { readonly range?: readonly number[] | null | undefined }, message: string) => {
    fault = yamlError(node.range?.[0] ?? 0, message);
    return visit.BREAK;
  };
  visit(document, {
    Node(_key, node, ancestors) {
      if (ancestors.length > maximumAncestors) return fail(node, tooDeep);
      if (isAlias(node)) {
        if (ancestors.some((outer) => isNode(outer) && !isAlias(outer) && outer.anchor === node.source))
          return fail(node, `the alias *${node.source} in its own value`);
        return anchors.has(node.source) ? undefined : fail(node, `${unresolvedAlias}: ${node.source}`);
      }
      if (node.anchor !== undefined) anchors.add(node.anchor);
      if (isScalar(node) && /\p{Surrogate}/u.test(String(node.value)))
        return fail(node, "half of a surrogate pair");
      if (!isScalar(node) || typeof node.value !== "number") return undefined;
      const isExact =
        Number.isFinite(node.value) &&
        (Number.isSafeInteger(node.value) || !/^[-+]?\d+$/.test(node.source ?? ""));
      return isExact ? undefined : fail(node, `the number ${node.source}, which JSON cannot hold`);
    },
    Map(_key, { items, range, anchor }, ancestors) {
      if (ancestors.length > maximumAncestors) return fail({ range: range ?? null }, tooDeep);
      if (anchor !== undefined) anchors.add(anchor);
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
  return fault;
}

const yamlError = (at: number, message: string): YAMLParseError =>
  new YAMLParseError([at, at + 1], "IMPOSSIBLE", message);
