import type { Filters } from "./parameters.ts";
import { asNumber, parseFloating, parseInteger, toFloat, truncated } from "./numbers.ts";
import { str } from "./print.ts";
import { Float, Undefined, isText, type Value } from "./values.ts";

function toInteger(value: Value, missing: Value = 0): Value {
  if (!isText(value)) return truncated(value) ?? missing;
  const whole = parseInteger(str(value));
  if (whole !== undefined) return whole;
  const real = parseFloating(str(value));
  return real === undefined || !Number.isFinite(real) ? missing : truncated(new Float(real))!;
}

function toReal(value: Value, missing: Value = new Float(0)): Value {
  if (value instanceof Undefined) return value.fail();
  const real = isText(value) ? parseFloating(str(value)) : asNumber(value);
  return real === undefined ? missing : new Float(toFloat(real));
}

export const numberFilters: Filters = {
  float: ["value default?", toReal],
  int: ["value default?", toInteger],
};
