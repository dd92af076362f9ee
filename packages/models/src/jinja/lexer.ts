import { fail, unsupported, TemplateError } from "./errors.ts";
import { codeEscape } from "./print.ts";
import { integer } from "./numbers.ts";
import { spaces, strip } from "./text.ts";
import { Float, type Value } from "./values.ts";

export interface Token {
  readonly type: string;
  readonly value: string;
  /** `name:` and the text of a name; the type of another token. */
  readonly key: string;
  /** The value of a string, an integer or a float. */
  readonly constant: Value;
  readonly line: number;
}

const whitespace = `[${spaces}]`;
const sticky = (pattern: string, flags = "") => new RegExp(pattern, `y${flags}`);
const tags = {
  raw: sticky(`\\{%([-+]?)${whitespace}*raw${whitespace}*(?:-%\\}${whitespace}*|%\\})`),
  endRaw: new RegExp(
    `\\{%([-+]?)${whitespace}*endraw${whitespace}*(?:\\+%\\}|-%\\}${whitespace}*|%\\}\\n?)`,
    "g",
  ),
  begin: /\{([{%#])([-+]?)/g,
  endComment: new RegExp(`(?:\\+#\\}|-#\\}${whitespace}*|#\\}\\n?)`, "g"),
  endBlock: sticky(`(?:\\+%\\}|-%\\}${whitespace}*|%\\}\\n?)`),
  endVariable: sticky(`(?:-\\}\\}${whitespace}*|\\}\\})`),
};
const digits = "(?:\\d+_)*\\d+";
const words = {
  spaces: sticky(`${whitespace}+`),
  float: sticky(`(?<!\\.)${digits}(?:(?:\\.${digits})?e[+-]?${digits}|\\.${digits})`, "i"),
  integer: sticky("0b(?:_?[01])+|0o(?:_?[0-7])+|0x(?:_?[\\da-f])+|[1-9](?:_?\\d)*|0(?:_?0)*", "i"),
  name: sticky("[\\p{XID_Continue}\\p{N}]+", "u"),
  string: sticky(`'[^'\\\\]*(?:\\\\[^][^'\\\\]*)*'|"[^"\\\\]*(?:\\\\[^][^"\\\\]*)*"`),
  operator: sticky("\\/\\/|\\*\\*|==|!=|>=|<=|[-+/*%~[\\](){}><=.:|,;]"),
};
const closing: Readonly<Record<string, string>> = { "{": "}", "(": ")", "[": "]" };

/** Splits a template into tokens, as jinja2 does with `trim_blocks` and `lstrip_blocks`. */
export function tokenize(template: string): Token[] {
  const source = template.replace(/\r\n?/g, "\n").replace(/\n$/, "");
  const tokens: Token[] = [];
  let at = 0;
  let line = 1;
  let isLineStart = true;
  const add = (type: string, value: string, constant: Value = null) =>
    tokens.push({ type, value, key: type === "name" ? `name:${value}` : type, constant, line });
  const advance = (end: number) => {
    line += source.slice(at, end).split("\n").length - 1;
    isLineStart = source[end - 1] === "\n";
    at = end;
  };
  const addData = (end: number, sign: string, isVariable: boolean) => {
    const text = source.slice(at, end);
    const data =
      sign === "-"
        ? strip(text, null, "right")
        : isVariable || sign === "+"
          ? text
          : leftStripped(text, isLineStart);
    if (data !== "") add("data", data);
  };

  while (at < source.length) {
    tags.begin.lastIndex = at;
    const match = tags.begin.exec(source);
    if (match === null) {
      add("data", source.slice(at));
      break;
    }
    const [, kind, sign = ""] = match;
    tags.raw.lastIndex = match.index;
    const raw = tags.raw.exec(source);
    addData(match.index, sign, kind === "{");
    if (raw !== null) {
      advance(tags.raw.lastIndex);
      tags.endRaw.lastIndex = at;
      const end = tags.endRaw.exec(source) ?? fail("Missing end of raw directive");
      addData(end.index, end[1]!, false);
      advance(tags.endRaw.lastIndex);
    } else if (kind === "#") {
      advance(tags.begin.lastIndex);
      tags.endComment.lastIndex = at;
      if (tags.endComment.exec(source) === null) fail("Missing end of comment tag");
      advance(tags.endComment.lastIndex);
    } else {
      advance(tags.begin.lastIndex);
      add(kind === "{" ? "variable_begin" : "block_begin", match[0]);
      tokenizeTag(kind === "{");
    }
  }
  add("eof", "");
  return tokens;

  function tokenizeTag(isVariable: boolean): void {
    const end = isVariable ? tags.endVariable : tags.endBlock;
    const open: string[] = [];
    for (;;) {
      end.lastIndex = at;
      if (open.length === 0 && end.test(source)) {
        add(isVariable ? "variable_end" : "block_end", "");
        advance(end.lastIndex);
        return;
      }
      const kind = (Object.keys(words) as (keyof typeof words)[]).find((name) => {
        words[name].lastIndex = at;
        return words[name].test(source);
      });
      if (at >= source.length) return;
      if (kind === undefined) return fail(`line ${line}: unexpected char ${JSON.stringify(source[at])}`);
      const text = source.slice(at, words[kind].lastIndex);
      if (kind === "operator") balance(open, text, line);
      if (kind === "name" && !/^[\p{XID_Start}_]\p{XID_Continue}*$/u.test(text))
        fail(`line ${line}: Invalid character in identifier`);
      if (kind !== "spaces") add(kind === "operator" ? text : kind, text, constantOf(kind, text));
      advance(words[kind].lastIndex);
    }
  }
}

/** Removes the spaces of the last line of `text` if there is nothing else on it. */
function leftStripped(text: string, isLineStart: boolean): string {
  const start = text.lastIndexOf("\n") + 1;
  return (start > 0 || isLineStart) && strip(text.slice(start), null, "both") === ""
    ? text.slice(0, start)
    : text;
}

function balance(open: string[], operator: string, line: number): void {
  if (operator in closing) open.push(closing[operator]!);
  else if (operator === "}" || operator === ")" || operator === "]") {
    const expected = open.pop();
    if (expected === undefined) fail(`line ${line}: unexpected '${operator}'`);
    if (expected !== operator) fail(`line ${line}: unexpected '${operator}', expected '${expected}'`);
  }
}

function constantOf(kind: keyof typeof words, text: string): Value {
  if (kind === "string") return unescaped(text.slice(1, -1));
  if (kind === "float") return new Float(Number(text.replaceAll("_", "")));
  return kind === "integer" ? integer(BigInt(text.replaceAll("_", ""))) : null;
}

const escapes: Readonly<Record<string, string>> = {
  "\n": "",
  "\\": "\\",
  "'": "'",
  '"': '"',
  a: "\x07",
  b: "\b",
  f: "\f",
  n: "\n",
  r: "\r",
  t: "\t",
  v: "\v",
};

/** Python's `unicode-escape`, to which jinja2 passes all characters beyond ASCII as escapes. */
function unescaped(text: string): string {
  return text.replace(
    /\\(?:([0-7]{1,3})|x([\da-fA-F]{0,2})|u([\da-fA-F]{0,4})|U([\da-fA-F]{0,8})|([^]))/gu,
    (escape, octal?: string, hex2?: string, hex4?: string, hex8?: string, character = "") => {
      if (octal !== undefined) return String.fromCharCode(Number.parseInt(octal, 8));
      const hex = hex2 ?? hex4 ?? hex8;
      if (hex !== undefined) {
        const code = Number.parseInt(hex, 16);
        if (hex.length !== { x: 2, u: 4, U: 8 }[escape[1] as "x" | "u" | "U"] || code > 0x10ffff)
          fail(`invalid escape ${escape} in a string`);
        return String.fromCodePoint(code);
      }
      if (character === "N") unsupported("the escape \\N");
      // A backslash before the escape of a character escapes the backslash of that escape.
      if (character > "\x7f") return codeEscape(Number(character.codePointAt(0)));
      return escapes[character] ?? escape;
    },
  );
}

/** The tokens of a template. A test such as `name:if` is the type and the text of a token; others are a type alone. */
export class TokenStream {
  readonly #tokens: readonly Token[];
  #at = 0;

  constructor(source: string) {
    this.#tokens = tokenize(source);
  }
  get current(): Token {
    return this.#tokens[this.#at]!;
  }
  look(): Token {
    return this.#tokens[Math.min(this.#at + 1, this.#tokens.length - 1)]!;
  }
  next(): Token {
    const token = this.current;
    if (token.type !== "eof") this.#at += 1;
    return token;
  }
  is(...tests: readonly string[]): boolean {
    return matches(this.current, tests);
  }
  skipIf(test: string): boolean {
    const isMatch = this.is(test);
    if (isMatch) this.next();
    return isMatch;
  }
  expect(test: string): Token {
    if (!this.is(test)) this.fail(`expected ${test.replace(/^name:/, "")}, got ${describe(this.current)}`);
    return this.next();
  }
  fail(message: string): never {
    throw new TemplateError(`line ${this.current.line}: ${message}`);
  }
}

export function matches({ type, key }: Token, tests: readonly string[]): boolean {
  return tests.some((test) => test === key || test === type);
}

export function describe({ type, value }: Token): string {
  return type === "name" || type === "data"
    ? JSON.stringify(value)
    : type.replace("_", " ").replace("eof", "the end");
}
