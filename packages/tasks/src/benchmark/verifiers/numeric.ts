import { configError, numberFromZero } from "@periodic-eval/contracts/options";
import type { MathNode } from "mathjs";
import * as z from "zod";
import { extract, nothingExtracted, short, verifierKind } from "./verifier.ts";

/** The functions, constants and operators of an expression; any other word means prose. */
const functions = ["abs", "acos", "asin", "atan", "cos", "exp", "log", "log10", "log2", "sin", "sqrt", "tan"];
const constants = ["pi", "e"];
const operators = ["add", "subtract", "multiply", "divide", "pow", "unaryMinus", "unaryPlus"];
const longest = 200;

const decimal = /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?$/i;
/** A number, or a fraction of two numbers. A minus after a digit or a letter is a dash. */
const numbers = /(?<![\w.)])-?(?:\d+(?:\.\d+)?|\.\d+)(?:e[+-]?\d+)?(?:\s*\/\s*\d+(?:\.\d+)?)?/gi;

/** Parses a string as a number: `1,200`, `1/2`, `\frac{1}{2}`, `2*sqrt(3)`. Returns null if it is not a finite number. */
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

/** Parses the whole string as a number, or else the last number or fraction in it. */
export async function numberIn(text: string): Promise<number | null> {
  const whole = await numberOf(text.trim().replace(/\.$/, ""));
  if (whole !== null) return whole;
  const plain = plainly(text);
  const last = [...plain.matchAll(numbers)].at(-1);
  if (last === undefined) return null;
  const [before, after] = [plain.slice(0, last.index), plain.slice(last.index + last[0].length)];
  const isPart = joinedBefore.test(before) || joinedAfter.test(after);
  const isGroup = groupsBefore.test(before) && group.test(last[0]);
  return isPart || isGroup ? null : numberOf(last[0]);
}

/** Digits grouped by other characters than thousands commas: their meaning is ambiguous. */
const joinedBefore = /\d[.,'\u2019_]$/;
const joinedAfter = /^[.,'\u2019_]\d/;
const groupsBefore = /(?<![\d.,])\d{1,3}(?:[ \u00a0\u2007\u2009\u202f]\d{3})*[ \u00a0\u2007\u2009\u202f]$/;
const group = /^\d{3}(?!\d)/;

/** Removes thousands commas, and replaces the minus sign U+2212 and LaTeX fractions by ASCII. */
const plainly = (text: string): string =>
  text
    .replaceAll("\u2212", "-")
    .replaceAll(/(?<![\d.,])\d{1,3}(?:,\d{3})+(?!\d|,\d)/g, (grouped) => grouped.replaceAll(",", ""))
    .replaceAll(/\\[dt]?frac\{(\d+)\}\{(\d+)\}/g, "$1/$2");

const finite = (value: unknown): number | null =>
  typeof value === "number" && Number.isFinite(value) ? value : null;

async function evaluated(text: string): Promise<number | null> {
  // mathjs takes half a second to load, so it is loaded only for expressions.
  const { parse } = await import("mathjs/number");
  try {
    const node = parse(text);
    return isArithmetic(node) ? finite(node.compile().evaluate({})) : null;
  } catch {
    return null;
  }
}

/** Whether an expression is pure arithmetic. A model wrote it, so nothing else is evaluated. */
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

const rightNumber = 'a number, or an expression such as "1/2"';
const numberFix = "Write the number.";

const tolerance = (otherwise: number) =>
  numberFromZero("a number of 0 or more")
    .meta({ fix: `Leave it out for ${otherwise}.` })
    .default(otherwise);

/**
 * Passes if the completion's number equals the answer within tolerances, like Python's `math.isclose`:
 * |a − b| ≤ max(rel_tol · max(|a|, |b|), abs_tol). The number is the whole completion if that is a number or an expression (`1/2`,
 * `2*sqrt(3)`), or else the last number or fraction in it. Thousands may have commas (`1,200,000`), and the decimal point is a
 * dot; digits grouped in other ways (`1 000 000`, `1.000.000`, `1'000`, `3,5`) are not numbers.
 */
export const numeric = verifierKind(
  "2",
  {
    answer: z.union([z.number(), z.string()], rightNumber).meta({ fix: numberFix }),
    args: { abs_tol: tolerance(0), extract, rel_tol: tolerance(1e-9) },
  },
  async (answer, { abs_tol: absTol, extract: extracted, rel_tol: relTol }) => {
    const right = typeof answer === "string" ? await numberOf(answer) : answer;
    if (right === null)
      throw configError({ where: "answer", value: answer, expected: rightNumber, fix: numberFix });
    return async (completion) => {
      const said = extracted(completion);
      if (said === null) return nothingExtracted;
      const number = await numberIn(said);
      if (number === null) return "no number";
      const allowed = Math.max(relTol * Math.max(Math.abs(number), Math.abs(right)), absTol);
      if (Math.abs(number - right) <= allowed) return null;
      return `${number} is not ${short(answer)} (rel_tol ${relTol}, abs_tol ${absTol})`;
    };
  },
);
