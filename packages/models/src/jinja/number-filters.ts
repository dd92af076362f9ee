import { calculate } from "./arithmetic.ts";
import { fail } from "./errors.ts";
import type { Filters } from "./parameters.ts";
import {
  asInteger,
  asNumber,
  integer,
  parseFloating,
  parseInteger,
  round,
  toFloat,
  toIndex,
  truncated,
} from "./numbers.ts";
import { str } from "./print.ts";
import { Float, Undefined, isText, typeName, type Value } from "./values.ts";

function absolute(value: Value): Value {
  if (value instanceof Float) return new Float(Math.abs(value.value));
  const whole = asInteger(value);
  if (whole === undefined) return fail(`bad operand type for abs(): '${typeName(value)}'`);
  return whole < 0 ? integer(-BigInt(whole)) : whole;
}

function toInteger(value: Value, missing: Value = 0, base: Value = 10): Value {
  if (!isText(value)) return truncated(value) ?? missing;
  const whole = parseInteger(str(value), toIndex(base));
  if (whole !== undefined) return whole;
  const real = parseFloating(str(value));
  return real === undefined || !Number.isFinite(real) ? missing : truncated(new Float(real))!;
}

function toReal(value: Value, missing: Value = new Float(0)): Value {
  if (value instanceof Undefined) return value.fail();
  const real = isText(value) ? parseFloating(str(value)) : asNumber(value);
  return real === undefined ? missing : new Float(toFloat(real));
}

function rounded(value: Value, precision: Value = 0, method: Value = "common"): Value {
  if (method !== "common" && method !== "ceil" && method !== "floor")
    return fail("method must be common, ceil or floor");
  if (method === "common") return round(value, toIndex(precision));
  const unit = calculate(10, "**", precision);
  const product = calculate(value, "*", unit);
  if (!(product instanceof Float)) return calculate(product, "/", unit);
  const whole = method === "ceil" ? Math.ceil(product.value) : Math.floor(product.value);
  if (!Number.isFinite(whole)) fail("cannot convert float infinity or NaN to integer");
  return calculate(integer(BigInt(whole)), "/", unit);
}

export const numberFilters: Filters = {
  abs: ["x/", absolute],
  float: ["value default?", toReal],
  int: ["value default? base?", toInteger],
  round: ["value precision? method?", rounded],
};
