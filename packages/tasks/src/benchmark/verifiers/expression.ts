import type { MathNode } from "mathjs";

/** What an expression of digits and signs may call and name; all else is prose. */
const functions = ["abs", "acos", "asin", "atan", "cos", "exp", "log", "log10", "log2", "sin", "sqrt", "tan"];
const constants = ["pi", "e"];
const operators = ["add", "subtract", "multiply", "divide", "pow", "unaryMinus", "unaryPlus"];
const longest = 200;

const decimal = /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?$/i;
/** A number or a fraction of two; a minus behind a digit or a letter is a dash. */
const numbers = /(?<![\w.)])-?(?:\d+(?:\.\d+)?|\.\d+)(?:e[+-]?\d+)?(?:\s*\/\s*\d+(?:\.\d+)?)?/gi;

/** The number that a text is: `1,200`, `1/2`, `\frac{1}{2}`, `2*sqrt(3)`; null where it is none, or not finite. */
export async function numberOf(text: string): Promise<number | null> {
  const plain = plainly(text).trim();
  if (decimal.test(plain)) return finite(Number(plain));
  const words = plain.match(/[a-z]\w*/gi) ?? [];
  const isExpression =
    plain.length <= longest &&
    /^[\w\s.+*/^()-]+$/.test(plain) &&
    /\d|pi|e/.test(plain) &&
    words.every((word) => functions.includes(word) || constants.includes(word) || /^e\d+$/i.test(word));
  return isExpression ? evaluated(plain) : null;
}

/** `numberOf` of the whole text, else of the last number or fraction in it. */
export async function numberIn(text: string): Promise<number | null> {
  const whole = await numberOf(text.trim().replace(/\.$/, ""));
  if (whole !== null) return whole;
  const last = plainly(text).match(numbers)?.at(-1);
  return last === undefined ? null : numberOf(last);
}

/** Thousands without their commas, a minus that is one, fractions of LaTeX with a slash. */
const plainly = (text: string): string =>
  text
    .replaceAll("\u2212", "-")
    .replaceAll(/(?<=\d),(?=\d{3}(?!\d))/g, "")
    .replaceAll(/\\[dt]?frac\{(\d+)\}\{(\d+)\}/g, "$1/$2");

const finite = (value: unknown): number | null =>
  typeof value === "number" && Number.isFinite(value) ? value : null;

async function evaluated(text: string): Promise<number | null> {
  // Half a second to load: only where an expression asks for it.
  const { parse } = await import("mathjs/number");
  try {
    const node = parse(text);
    return isArithmetic(node) ? finite(node.compile().evaluate({})) : null;
  } catch {
    return null;
  }
}

/** A model wrote it: nothing is run but arithmetic. */
function isArithmetic(node: MathNode): boolean {
  let isPlain = true;
  node.traverse((part) => {
    const { type, fn, name } = part as MathNode & { readonly fn?: unknown; readonly name?: string };
    isPlain &&=
      type === "ConstantNode" ||
      type === "ParenthesisNode" ||
      (type === "OperatorNode" && operators.includes(String(fn))) ||
      (type === "FunctionNode" && functions.includes(name!)) ||
      (type === "SymbolNode" && (constants.includes(name!) || functions.includes(name!)));
  });
  return isPlain;
}
