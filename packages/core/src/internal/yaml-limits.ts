import { maximumDepth } from "./strict-json.ts";

/** A token takes up to 500 bytes of memory until the file is parsed. A short row takes about twelve. */
const maximumTokens = 2_000_000;

/** The first limit that a file exceeds, and its line. */
export interface Excess {
  /** From 1. */
  readonly line: number;
  /** `values nested deeper than 400 levels`. */
  readonly what: string;
}

/**
 * Returns the first limit that YAML or JSON exceeds: 400 levels, or 2,000,000 tokens; null if it exceeds none. Brackets, block
 * indicators and columns of indentation count as levels, so that no depth is underestimated.
 *
 * @param tokens The strings of `new Lexer().lex(text)` of the package yaml, which is not recursive.
 */
export function excessOf(tokens: Iterable<string>): Excess | null {
  let [line, open, inLine, count] = [1, 0, 0, 0];
  let isLineStart = true;
  for (const token of tokens) {
    if (token === "[" || token === "{") open++;
    else if (token === "]" || token === "}") open--;
    else if (open === 0 && (token === "-" || token === "?")) inLine++;
    else if (isLineStart && token.startsWith(" ")) inLine = token.length;
    if (open + inLine > maximumDepth)
      return { line, what: `values nested deeper than ${maximumDepth} levels` };
    if (++count > maximumTokens) return { line, what: `more than ${maximumTokens} YAML tokens` };
    isLineStart = token.endsWith("\n");
    if (isLineStart) inLine = 0;
    line += token.split("\n").length - 1;
  }
  return null;
}
