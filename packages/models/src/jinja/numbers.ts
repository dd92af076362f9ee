import { fail, unsupported } from "./errors.ts";
import { Float, Undefined, typeName, type Value } from "./values.ts";

export type Integer = number | bigint;

/** Returns a bigint as a number if that is exact. */
export function integer(value: bigint): Integer {
  const small = Number(value);
  return Number.isSafeInteger(small) ? small : value;
}

/** The integer that a value is in Python, where True is 1; undefined for other values. */
export function asInteger(value: Value): Integer | undefined {
  if (typeof value === "boolean") return Number(value);
  return typeof value === "number" || typeof value === "bigint" ? value : undefined;
}

/** The number that a value is in Python, exactly; undefined for other values. */
export function asNumber(value: Value): Integer | undefined {
  return value instanceof Float ? value.value : asInteger(value);
}

/** Converts an argument that must be an integer, such as an index, a count or a width. */
export function toIndex(value: Value): number {
  const index = asInteger(value);
  if (index === undefined) return fail(`'${typeName(value)}' object cannot be interpreted as an integer`);
  return Number(index);
}

export function toFloat(value: Integer): number {
  const result = Number(value);
  if (typeof value === "bigint" && !Number.isFinite(result)) fail("int too large to convert to float");
  return result;
}

/** Python's `repr` of a float: the shortest digits, with an exponent below -4 or from 16. */
export function floatText(value: number): string {
  if (Number.isNaN(value)) return "nan";
  if (!Number.isFinite(value)) return value > 0 ? "inf" : "-inf";
  const sign = value < 0 || Object.is(value, -0) ? "-" : "";
  const [mantissa = "", exponentText] = Math.abs(value).toExponential().split("e");
  const exponent = Number(exponentText);
  const digits = mantissa.replace(".", "");
  if (exponent < -4 || exponent >= 16) return `${sign}${mantissa}e${exponentOf(exponent)}`;
  if (exponent < 0) return `${sign}0.${"0".repeat(-exponent - 1)}${digits}`;
  const whole = digits.slice(0, exponent + 1).padEnd(exponent + 1, "0");
  return `${sign}${whole}.${digits.slice(exponent + 1) || "0"}`;
}

/** An exponent as Python writes it: with a sign and at least two digits. */
export function exponentOf(exponent: number): string {
  return `${exponent < 0 ? "-" : "+"}${String(Math.abs(exponent)).padStart(2, "0")}`;
}

export function integerText(value: Integer): string {
  const text = String(value);
  if (text.length > 4301) fail("Exceeds the limit (4300 digits) for integer string conversion");
  return text;
}

/** Returns |value| · 10^decimals as an integer, with ties to even: exact, unlike `toFixed`. */
export function scaled(value: number, decimals: number): bigint {
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, Math.abs(value));
  const bits = view.getBigUint64(0);
  const biased = Number(bits >> 52n);
  const fraction = bits & ((1n << 52n) - 1n);
  let numerator = biased === 0 ? fraction : fraction | (1n << 52n);
  let denominator = 1n;
  const exponent = Math.max(biased, 1) - 1075;
  if (exponent > 0) numerator <<= BigInt(exponent);
  else denominator <<= BigInt(-exponent);
  if (decimals > 0) numerator *= 10n ** BigInt(decimals);
  else denominator *= 10n ** BigInt(-decimals);
  return divideToEven(numerator, denominator);
}

/** Divides positive integers and rounds ties to even. */
export function divideToEven(numerator: bigint, denominator: bigint): bigint {
  const quotient = numerator / denominator;
  const twice = 2n * (numerator % denominator);
  return twice > denominator || (twice === denominator && quotient % 2n === 1n) ? quotient + 1n : quotient;
}

/** Python's `round(value, decimals)`. */
export function round(value: Value, decimals: number): Value {
  if (value instanceof Float) {
    if (!Number.isFinite(value.value) || decimals > 400) return value;
    const sign = value.value < 0 || Object.is(value.value, -0) ? "-" : "";
    return new Float(Number(`${sign}${scaled(value.value, Math.max(decimals, -400))}e${-decimals}`));
  }
  const whole = asInteger(value);
  if (whole === undefined) return fail(`type ${typeName(value)} doesn't define __round__ method`);
  if (decimals >= 0) return whole;
  const big = BigInt(whole);
  const unit = 10n ** BigInt(Math.min(-decimals, 5000));
  const rounded = divideToEven(big < 0n ? -big : big, unit) * unit;
  return integer(big < 0n ? -rounded : rounded);
}

const trimmed = (text: string) => text.replace(/^\s+|\s+$/g, "");

function checkDigits(text: string): void {
  if (/\p{Nd}/u.test(text.replace(/[0-9]/g, ""))) unsupported("digits other than 0 to 9 in a number");
}

/** Python's `int(text, base)`; undefined for a ValueError. */
export function parseInteger(text: string, base: number): Integer | undefined {
  checkDigits(text);
  if (base !== 0 && (base < 2 || base > 36)) return undefined;
  const match = /^([+-]?)(0[xX](?=_?[0-9a-fA-F])_?|0[oO]_?|0[bB]_?)?([0-9a-zA-Z]+(?:_[0-9a-zA-Z]+)*)$/.exec(
    trimmed(text),
  );
  if (match === null) return undefined;
  const [, sign = "", prefix = "", rest = ""] = match;
  const prefixBase = { x: 16, o: 8, b: 2 }[prefix.slice(1, 2).toLowerCase()];
  const isPrefix = prefixBase !== undefined && (base === 0 || base === prefixBase);
  const radix = base === 0 ? (prefixBase ?? 10) : base;
  const digits = (isPrefix ? rest : prefix + rest).replaceAll("_", "").toLowerCase();
  if (base === 0 && !isPrefix && /^0+[1-9]/.test(digits)) return undefined;
  let value = 0n;
  for (const digit of digits) {
    const place10 = Number.parseInt(digit, 36);
    if (!(place10 < radix)) return undefined;
    value = value * BigInt(radix) + BigInt(place10);
  }
  return integer(sign === "-" ? -value : value);
}

/** Python's `float(text)`; undefined for a ValueError. */
export function parseFloating(text: string): number | undefined {
  checkDigits(text);
  const plain = trimmed(text);
  const special = /^([+-]?)(?:(inf(?:inity)?)|nan)$/i.exec(plain);
  if (special !== null)
    return special[2] === undefined ? Number.NaN : special[1] === "-" ? -Infinity : Infinity;
  const digits = String.raw`\d+(?:_\d+)*`;
  const decimal = new RegExp(`^[+-]?(?:${digits}\\.?(?:${digits})?|\\.${digits})(?:e[+-]?${digits})?$`, "i");
  return decimal.test(plain) ? Number(plain.replaceAll("_", "")) : undefined;
}

/** Python's `int(value)` of a number. */
export function truncated(value: Value): Integer | undefined {
  if (value instanceof Undefined) return value.fail();
  if (!(value instanceof Float)) return asInteger(value);
  if (Number.isNaN(value.value)) return undefined;
  if (!Number.isFinite(value.value)) return fail("cannot convert float infinity to integer");
  return integer(BigInt(Math.trunc(value.value)));
}
