/** A value of a member, and the objects inside it: those in nested arrays too, but not those in nested objects. */
export interface FoundValue {
  readonly kind: "number" | "string" | "other";
  /** The source of a number, or the value of a string; empty for any other value. */
  readonly text: string;
  readonly objects: readonly FoundObject[];
}

export interface FoundObject {
  /** Index of its `{`. */
  readonly start: number;
  /** Index after its `}`. */
  readonly end: number;
  /** In document order; a repeated key keeps its last value only. */
  readonly members: ReadonlyMap<string, FoundValue>;
}

interface OpenObject {
  readonly start: number;
  readonly members: Map<string, FoundValue>;
  /** The array that receives the object; null for an outermost object. */
  readonly into: FoundObject[] | null;
}

interface OpenArray {
  readonly start: null;
  /** The array of the member that contains it; nested arrays share it. */
  readonly into: FoundObject[];
}

/**
 * - `json`: RFC 8259, and one trailing comma before `}` or `]`.
 * - `loose`: also raw line breaks and tabs inside strings, and `85/100` as a number.
 * - `python`: also single quotes, and `True`, `False` and `None`.
 */
export type Notation = "json" | "loose" | "python";

/**
 * Finds the JSON objects in any string, from left to right. After a valid object the search continues behind it, after an invalid
 * one at the next `{`.
 *
 * Takes time linear in the string: whether an object is valid does not depend on its surroundings, so each `{` is decided once,
 * including those still open when parsing fails. Does not recurse, so any depth works.
 */
export function findJsonObjects(text: string, notation: Notation = "json"): readonly FoundObject[] {
  const decided = new Map<number, FoundObject | null>();
  const found: FoundObject[] = [];
  for (let at = text.indexOf("{"); at >= 0;) {
    const object = decided.has(at) ? decided.get(at)! : readObject(text, at, decided, notation);
    if (object !== null) found.push(object);
    at = text.indexOf("{", object?.end ?? at + 1);
  }
  return found;
}

function readObject(
  text: string,
  start: number,
  decided: Map<number, FoundObject | null>,
  notation: Notation,
): FoundObject | null {
  const open: (OpenObject | OpenArray)[] = [{ start, members: new Map(), into: null }];
  let at = start + 1;
  /** True if a key, an element or the end may follow; false if a comma or the end must follow. */
  let isEntry = true;
  const fail = (): null => {
    for (const frame of open) if (frame.start !== null) decided.set(frame.start, null);
    return null;
  };

  for (;;) {
    const frame = open.at(-1)!;
    at = afterSpace(text, at);
    if (text[at] === (frame.start === null ? "]" : "}")) {
      at++;
      open.pop();
      isEntry = false;
      if (frame.start === null) continue;
      const object = { start: frame.start, end: at, members: frame.members };
      decided.set(frame.start, object);
      frame.into?.push(object);
      if (open.length === 0) return object;
      continue;
    }
    if (!isEntry) {
      if (text[at] !== ",") return fail();
      at++;
      isEntry = true;
      continue;
    }

    let objects: FoundObject[];
    let key: string | null = null;
    if (frame.start === null) {
      objects = frame.into;
    } else {
      const keyEnd = afterString(text, at, notation);
      if (keyEnd === null) return fail();
      key = stringOf(text.slice(at, keyEnd), notation);
      at = afterSpace(text, keyEnd);
      if (text[at] !== ":") return fail();
      at = afterSpace(text, at + 1);
      objects = [];
    }

    const first = text[at];
    let [kind, value]: [FoundValue["kind"], string] = ["other", ""];
    isEntry = first === "{" || first === "[";
    if (first === "[") {
      open.push({ start: null, into: objects });
      at++;
    } else if (first === "{") {
      const known = decided.get(at);
      if (known === null) return fail();
      if (known === undefined) {
        open.push({ start: at, members: new Map(), into: objects });
        at++;
      } else {
        objects.push(known);
        at = known.end;
        isEntry = false;
      }
    } else {
      const scalar = readScalar(text, at, notation);
      if (scalar === null) return fail();
      ({ kind, value, end: at } = scalar);
    }
    if (key !== null && frame.start !== null) setLast(frame.members, key, { kind, text: value, objects });
  }
}

/** Sets a member so that a repeated key has the position of its last value. */
function setLast(members: Map<string, FoundValue>, key: string, value: FoundValue): void {
  members.delete(key);
  members.set(key, value);
}

/** Returns the value of a string in its quotes. Escapes of Python stay: no key and no number has them. */
const stringOf = (quoted: string, notation: Notation): string =>
  notation !== "python" && quoted.includes("\\")
    ? (JSON.parse(quoted.replaceAll(/[\t\n\r]/g, " ")) as string)
    : quoted.slice(1, -1);

function afterSpace(text: string, from: number): number {
  let at = from;
  for (; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) break;
  }
  return at;
}

const jsonEscape = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y;
const escapes = {
  json: jsonEscape,
  loose: jsonEscape,
  python: /\\(?:["'\\/bfnrt]|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})/y,
};

function afterString(text: string, from: number, notation: Notation): number | null {
  const quote = text[from];
  if (quote !== '"' && (quote !== "'" || notation !== "python")) return null;
  const escape = escapes[notation];
  for (let at = from + 1; at < text.length;) {
    const character = text[at]!;
    if (character === quote) return at + 1;
    if (character < " " && (notation === "json" || !"\t\n\r".includes(character))) return null;
    if (character !== "\\") {
      at++;
      continue;
    }
    escape.lastIndex = at;
    if (!escape.test(text)) return null;
    at = escape.lastIndex;
  }
  return null;
}

const number = String.raw`-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?`;
const ofHundred = String.raw`(?:[ \t]*\/[ \t]*100(?![\d.]))?`;
const scalars = {
  json: new RegExp(`${number}|true|false|null`, "y"),
  loose: new RegExp(`${number}${ofHundred}|true|false|null`, "y"),
  python: new RegExp(`${number}${ofHundred}|[tT]rue|[fF]alse|null|None`, "y"),
};

function readScalar(text: string, at: number, notation: Notation) {
  const end = afterString(text, at, notation);
  if (end !== null) return { kind: "string", value: stringOf(text.slice(at, end), notation), end } as const;
  const scalar = scalars[notation];
  scalar.lastIndex = at;
  const source = scalar.exec(text)?.[0];
  if (source === undefined) return null;
  const isNumber = !/^[a-z]/i.test(source);
  return {
    kind: isNumber ? "number" : "other",
    value: isNumber ? source : "",
    end: at + source.length,
  } as const;
}
