/** A value of a member, and the objects inside it: those in nested arrays too, but not those in nested objects. */
export interface FoundValue {
  readonly kind: "number" | "string" | "other";
  /** The source of a number or a string, quotes included; empty for any other value. */
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
 * Finds the JSON objects in any string, from left to right (RFC 8259, plus one trailing comma before `}` or `]`). After a valid
 * object the search continues behind it, after an invalid one at the next `{`.
 *
 * Takes time linear in the string: whether an object is valid does not depend on its surroundings, so each `{` is decided once,
 * including those still open when parsing fails. Does not recurse, so any depth works.
 */
export function findJsonObjects(text: string): readonly FoundObject[] {
  const decided = new Map<number, FoundObject | null>();
  const found: FoundObject[] = [];
  for (let at = text.indexOf("{"); at >= 0;) {
    const object = decided.has(at) ? decided.get(at)! : readObject(text, at, decided);
    if (object !== null) found.push(object);
    at = text.indexOf("{", object?.end ?? at + 1);
  }
  return found;
}

function readObject(
  text: string,
  start: number,
  decided: Map<number, FoundObject | null>,
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
      const keyEnd = afterString(text, at);
      if (keyEnd === null) return fail();
      key = stringOf(text.slice(at, keyEnd));
      at = afterSpace(text, keyEnd);
      if (text[at] !== ":") return fail();
      at = afterSpace(text, at + 1);
      objects = [];
    }

    const [valueStart, first] = [at, text[at]];
    let kind: FoundValue["kind"] = "other";
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
      const end = first === '"' ? afterString(text, at) : afterScalar(text, at);
      if (end === null) return fail();
      kind = first === '"' ? "string" : /[a-z]/.test(first!) ? "other" : "number";
      at = end;
    }
    if (key !== null && frame.start !== null)
      setLast(frame.members, key, {
        kind,
        text: kind === "other" ? "" : text.slice(valueStart, at),
        objects,
      });
  }
}

/** Sets a member so that a repeated key has the position of its last value. */
function setLast(members: Map<string, FoundValue>, key: string, value: FoundValue): void {
  members.delete(key);
  members.set(key, value);
}

/** Returns the value of a JSON string given with its quotes. */
export const stringOf = (quoted: string): string =>
  quoted.includes("\\") ? (JSON.parse(quoted) as string) : quoted.slice(1, -1);

function afterSpace(text: string, from: number): number {
  let at = from;
  for (; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) break;
  }
  return at;
}

const escapeSequence = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y;

function afterString(text: string, from: number): number | null {
  if (text[from] !== '"') return null;
  for (let at = from + 1; at < text.length;) {
    const code = text.charCodeAt(at);
    if (code === 0x22) return at + 1;
    if (code < 0x20) return null;
    if (code !== 0x5c) {
      at++;
      continue;
    }
    escapeSequence.lastIndex = at;
    if (!escapeSequence.test(text)) return null;
    at = escapeSequence.lastIndex;
  }
  return null;
}

const scalar = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|true|false|null/y;

function afterScalar(text: string, from: number): number | null {
  scalar.lastIndex = from;
  return scalar.test(text) ? scalar.lastIndex : null;
}
