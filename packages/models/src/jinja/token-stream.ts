import { TemplateError } from "./errors.ts";
import { tokenize, type Token } from "./lexer.ts";

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
