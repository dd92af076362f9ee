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

/**
 * - `json`: RFC 8259, and one trailing comma before `}` or `]`.
 * - `loose`: also raw line breaks and tabs inside strings, and `85/100` as a number.
 * - `python`: also single quotes, and `True`, `False` and `None`.
 */
export type Notation = "json" | "loose" | "python";

/** An object with deeper levels is invalid, but the search finds the objects inside it. */
const maximumDepth = 200;

/**
 * Finds the JSON objects in any string, from left to right. After a valid object the search continues behind it, after an invalid
 * one at the next `{`.
 *
 * Takes time linear in the string: whether an object is valid does not depend on its surroundings, so each `{` is decided once,
 * including those still open when parsing fails.
 */
export function findJsonObjects(text: string, notation: Notation = "json"): readonly FoundObject[] {
  const { read } = valueReader(text, grammars[notation]);
  const objects: FoundObject[] = [];
  for (let at = text.indexOf("{"); at >= 0;) {
    const object = read(at);
    if (object !== null) objects.push(object);
    at = text.indexOf("{", object?.end ?? at + 1);
  }
  return objects;
}

/** Finds the outermost JSON objects and arrays in any string, from left to right, each with its place. */
export function findJsonValues(text: string): readonly Pick<FoundObject, "start" | "end">[] {
  const { endOf } = valueReader(text, grammars.json);
  const values: { readonly start: number; readonly end: number }[] = [];
  for (let at = 0; at < text.length;) {
    const end = text[at] === "{" || text[at] === "[" ? endOf(at) : null;
    if (end !== null) values.push({ start: at, end });
    at = end ?? at + 1;
  }
  return values;
}

interface Grammar {
  readonly string: RegExp;
  readonly scalar: RegExp;
  /** Whether escapes stay: no key and no number has those of Python. */
  readonly keepsEscapes: boolean;
}

const space = /[ \n\r\t]*/y;
const escape = String.raw`["\\/bfnrt]|u[0-9a-fA-F]{4}`;
const quoted = (quote: string, plain: string, escapes: string) =>
  `${quote}[^${quote}\\\\${plain}]*(?:\\\\(?:${escapes})[^${quote}\\\\${plain}]*)*${quote}`;
const [control, controlButSpace] = [
  String.raw`\u0000-\u001f`,
  String.raw`\u0000-\u0008\u000b\u000c\u000e-\u001f`,
];
const pythonEscape = `'|${escape}|x[0-9a-fA-F]{2}|U[0-9a-fA-F]{8}`;
const number = String.raw`-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?`;
const ofHundred = String.raw`(?:[ \t]*\/[ \t]*100(?![\d.]))?`;

const grammars: Readonly<Record<Notation, Grammar>> = {
  json: {
    string: new RegExp(quoted('"', control, escape), "y"),
    scalar: new RegExp(`${number}|true|false|null`, "y"),
    keepsEscapes: false,
  },
  loose: {
    string: new RegExp(quoted('"', controlButSpace, escape), "y"),
    scalar: new RegExp(`${number}${ofHundred}|true|false|null`, "y"),
    keepsEscapes: false,
  },
  python: {
    string: new RegExp(
      ['"', "'"].map((quote) => quoted(quote, controlButSpace, pythonEscape)).join("|"),
      "y",
    ),
    scalar: new RegExp(`${number}${ofHundred}|[tT]rue|[fF]alse|null|None`, "y"),
    keepsEscapes: true,
  },
};

const other = { kind: "other", text: "" } as const;

/** Returns functions that read the object, or the end of the value, at an index of the text; null if there is none. */
function valueReader(text: string, { string, scalar, keepsEscapes }: Grammar) {
  const decided = new Map<number, FoundObject | null>();
  let at = 0;
  const take = (pattern: RegExp): string | null => {
    pattern.lastIndex = at;
    const [token = null] = pattern.exec(text) ?? [];
    at += token?.length ?? 0;
    return token;
  };
  const takeSign = (sign: string): boolean => {
    take(space);
    const isNext = text[at] === sign;
    if (isNext) at += 1;
    return isNext;
  };
  const takeString = (): string | null => {
    const token = take(string);
    if (token === null || keepsEscapes || !token.includes("\\")) return token?.slice(1, -1) ?? null;
    return JSON.parse(token.replaceAll(/[\t\n\r]/g, " ")) as string;
  };
  /** Reads entries with commas between them, until their end. */
  const takeList = (end: string, takeEntry: () => boolean): boolean => {
    while (!takeSign(end)) {
      if (!takeEntry()) return false;
      if (takeSign(end)) return true;
      if (!takeSign(",")) return false;
    }
    return true;
  };
  const takeValue = (objects: FoundObject[], depth: number): Omit<FoundValue, "objects"> | null => {
    take(space);
    if (text[at] === "{") {
      const object = takeObject(depth + 1);
      return object === null ? null : (objects.push(object), other);
    }
    if (takeSign("[")) {
      const isArray = depth < maximumDepth && takeList("]", () => takeValue(objects, depth + 1) !== null);
      return isArray ? other : null;
    }
    const value = takeString();
    if (value !== null) return { kind: "string", text: value };
    const source = take(scalar);
    if (source === null) return null;
    return /^[a-z]/i.test(source) ? other : { kind: "number", text: source };
  };
  const takeObject = (depth: number): FoundObject | null => {
    const start = at;
    const known = decided.get(start);
    if (known !== undefined) {
      at = known?.end ?? at;
      return known;
    }
    if (depth > maximumDepth) return null;
    at += 1;
    const members = new Map<string, FoundValue>();
    const isObject = takeList("}", () => {
      take(space);
      const key = takeString();
      if (key === null || !takeSign(":")) return false;
      const objects: FoundObject[] = [];
      const value = takeValue(objects, depth);
      if (value === null) return false;
      // A repeated key has the position of its last value.
      members.delete(key);
      members.set(key, { ...value, objects });
      return true;
    });
    const object = isObject ? { start, end: at, members } : null;
    decided.set(start, object);
    return object;
  };
  const after = <T>(start: number, take: () => T): T => {
    at = start;
    return take();
  };
  return {
    read: (start: number) => after(start, () => takeObject(1)),
    endOf: (start: number) => after(start, () => takeValue([], 0) && at),
  };
}
