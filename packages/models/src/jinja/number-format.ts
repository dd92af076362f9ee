import { exponentOf, floatText, scaled } from "./numbers.ts";

/** Formats the absolute value of a float as Python's `e`, `f` or `g` (lowercase). `isAlternate` is the flag `#`. */
export function formatFloat(
  value: number,
  type: "e" | "f" | "g",
  precision: number,
  isAlternate: boolean,
  /** As `format()` without a type: a number without an exponent has at least one decimal. */
  addsDecimal = false,
): string {
  if (Number.isNaN(value)) return "nan";
  if (!Number.isFinite(value)) return "inf";
  if (type === "f") return withPoint(decimals(scaled(value, precision), precision), isAlternate);
  const digitCount = type === "e" ? precision + 1 : Math.max(precision, 1);
  const { digits, exponent } = significant(Math.abs(value), digitCount);
  if (type === "e") {
    const mantissa = digitCount > 1 ? `${digits[0]}.${digits.slice(1)}` : digits;
    return `${withPoint(mantissa, isAlternate)}e${exponentOf(exponent)}`;
  }
  const shown = isAlternate ? digits : digits.replace(/0+$/, "") || "0";
  if (exponent < -4 || exponent >= digitCount - (addsDecimal ? 1 : 0)) {
    const mantissa = shown.length > 1 ? `${shown[0]}.${shown.slice(1)}` : shown;
    return `${withPoint(mantissa, isAlternate)}e${exponentOf(exponent)}`;
  }
  const whole = exponent < 0 ? "0" : shown.slice(0, exponent + 1).padEnd(exponent + 1, "0");
  const rest =
    exponent < 0 ? "0".repeat(-exponent - 1) + (shown === "0" ? "" : shown) : shown.slice(exponent + 1);
  if (rest !== "") return `${whole}.${rest}`;
  return addsDecimal ? `${whole}.0` : withPoint(whole, isAlternate);
}

const withPoint = (text: string, isAlternate: boolean) =>
  isAlternate && !text.includes(".") ? `${text}.` : text;

function decimals(value: bigint, count: number): string {
  if (count === 0) return String(value);
  const digits = String(value).padStart(count + 1, "0");
  return `${digits.slice(0, -count)}.${digits.slice(-count)}`;
}

/** Returns exactly `count` significant digits and the decimal exponent of the first. */
function significant(value: number, count: number): { digits: string; exponent: number } {
  if (value === 0) return { digits: "0".repeat(count), exponent: 0 };
  let exponent = Number(value.toExponential().split("e")[1]);
  let digits = String(scaled(value, count - 1 - exponent));
  if (digits.length > count) {
    exponent += 1;
    digits = digits.slice(0, count);
  }
  return { digits, exponent };
}

/** Formats the absolute value of a float as `format()` does without a type or precision. */
export const plainFloat = (value: number): string => floatText(Math.abs(value));

/** Adds separators to the part before the point or exponent: to decimal digits by 3, to others by 4. */
export function grouped(text: string, separator: string, size: number): string {
  const digit = size === 3 ? "\\d" : "[\\da-fA-F]";
  const [, whole = "", rest = ""] = new RegExp(`^(${digit}*)(.*)$`).exec(text)!;
  return whole.replace(new RegExp(`\\B(?=(?:${digit}{${size}})+$)`, "g"), separator) + rest;
}
