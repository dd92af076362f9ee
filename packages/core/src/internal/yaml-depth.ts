/** Parsers of YAML are recursive: deeper values overflow the stack, which can end the process. */
const maximumDepth = 400;
/** A token takes up to 500 bytes of memory until the file is parsed. A question takes about twelve. */
const maximumTokens = 2_000_000;

/** What a YAML or JSON file has too much of, and the line from 1 at which it does. */
export interface Excess {
  readonly line: number;
  readonly what: string;
}

/**
 * Returns where YAML or JSON nests deeper than 400 levels or has more than 2,000,000 tokens, or null. Brackets, block indicators and columns of
 * indentation count as levels, so that no depth is underestimated.
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
    if (++count > maximumTokens)
      return {
        line,
        what: `more than ${maximumTokens} words and signs; write rows as JSON Lines or Parquet`,
      };
    isLineStart = token.endsWith("\n");
    if (isLineStart) inLine = 0;
    line += token.split("\n").length - 1;
  }
  return null;
}
