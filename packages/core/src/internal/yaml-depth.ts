/** Parsers of YAML are recursive: deeper values overflow the stack, which can end the process. */
const maximumDepth = 400;

/**
 * Returns the line, from 1, at which YAML or JSON nests deeper than 400 levels, or null. Brackets, block indicators and columns of
 * indentation count as levels, so that no depth is underestimated.
 *
 * @param tokens The strings of `new Lexer().lex(text)` of the package yaml, which is not recursive.
 */
export function tooDeepLine(tokens: Iterable<string>): number | null {
  let [line, open, inLine] = [1, 0, 0];
  let isLineStart = true;
  for (const token of tokens) {
    if (token === "[" || token === "{") open++;
    else if (token === "]" || token === "}") open--;
    else if (open === 0 && (token === "-" || token === "?")) inLine++;
    else if (isLineStart && token.startsWith(" ")) inLine = token.length;
    if (open + inLine > maximumDepth) return line;
    isLineStart = token.endsWith("\n");
    if (isLineStart) inLine = 0;
    line += token.split("\n").length - 1;
  }
  return null;
}
