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

const trimmed = (text: string) => text.replace(/^\s+|\s+$/g, "");

function checkDigits(text: string): void {
  if (/\p{Nd}/u.test(text.replace(/[0-9]/g, ""))) unsupported("digits other than 0 to 9 in a number");
}

/** Python's `int(text)`; undefined for a ValueError. */
export function parseInteger(text: string): Integer | undefined {
  checkDigits(text);
  const plain = trimmed(text);
  return /^[+-]?\d+(?:_\d+)*$/.test(plain) ? integer(BigInt(plain.replace(/[+_]/g, ""))) : undefined;
}

/** Python's `float(text)`; undefined for a ValueError. */
export function parseFloating(text: string): number | undefined {
  checkDigits(text);
  const plain = trimmed(text);
  if (/^[+-]?(?:inf(?:inity)?|nan)$/i.test(plain)) unsupported(`the number ${plain}`);
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
