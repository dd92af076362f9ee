import { fail, unsupported } from "./errors.ts";
import { formatFloat, grouped, plainFloat } from "./number-format.ts";
import { asInteger, integerText, toFloat, type Integer } from "./numbers.ts";
import { codePoint } from "./percent-format.ts";
import { str } from "./print.ts";
import { characters, lengthOf } from "./text.ts";
import { Float, isText, typeName, type Value } from "./values.ts";
import { repeated } from "./work.ts";

interface Spec {
  readonly fill: string;
  readonly align: string;
  readonly sign: string;
  readonly isAlternate: boolean;
  readonly width: number;
  readonly separator: string;
  readonly precision: number | null;
  readonly type: string;
}

const pattern = /^(?:([^])?([<>=^]))?([+\- ]?)(#?)(0?)(\d*)([,_]?)(?:\.(\d+))?([^]?)$/u;

/** Python's `format(value, spec)`. */
export function formatValue(value: Value, text: string): string {
  const whole = asInteger(value);
  if (text === "" || !(isText(value) || value instanceof Float || whole !== undefined)) {
    if (text !== "") fail(`unsupported format string passed to ${typeName(value)}.__format__`);
    return str(value);
  }
  const match = pattern.exec(text) ?? fail("Invalid format specifier");
  const [, fill, align = "", sign = "", alternate, zero, width, separator = "", precision, type = ""] = match;
  const spec: Spec = {
    fill: fill ?? (zero === "0" ? "0" : " "),
    align: align === "" && zero === "0" && !isText(value) ? "=" : align,
    sign,
    isAlternate: alternate === "#",
    width: Number(width),
    separator,
    precision: precision === undefined ? null : Number(precision),
    type,
  };
  if (isText(value)) return formatText(str(value), spec);
  if (type === "n") unsupported("the format n");
  if (whole !== undefined && !"eEfFgG%".includes(type || "d")) return formatInteger(whole, spec);
  return formatReal(value instanceof Float ? value.value : toFloat(whole!), spec);
}

function formatText(text: string, spec: Spec): string {
  if (spec.sign !== "") fail("Sign not allowed in string format specifier");
  if (spec.isAlternate) fail("Alternate form (#) not allowed in string format specifier");
  if (spec.align === "=") fail("'=' alignment not allowed in string format specifier");
  if (spec.separator !== "") fail(`Cannot specify '${spec.separator}' with 's'.`);
  if (spec.type !== "" && spec.type !== "s")
    fail(`Unknown format code '${spec.type}' for object of type 'str'`);
  const shown = spec.precision === null ? text : characters(text).slice(0, spec.precision).join("");
  return aligned("", shown, spec, "<");
}

function formatInteger(value: Integer, spec: Spec): string {
  const { type, separator } = spec;
  if (!"bcdoxX".includes(type)) fail(`Unknown format code '${type}' for object of type 'int'`);
  if (spec.precision !== null) fail("Precision not allowed in integer format specifier");
  if (type === "c") {
    if (spec.sign !== "" || spec.isAlternate || separator !== "")
      fail("Sign not allowed with integer format specifier 'c'");
    return aligned("", codePoint(Number(value)), spec, ">");
  }
  const isDecimal = type === "" || type === "d";
  if (separator === "," && !isDecimal) fail(`Cannot specify ',' with '${type}'.`);
  const size = value < 0 ? -BigInt(value) : BigInt(value);
  const digits = isDecimal ? integerText(size) : size.toString({ b: 2, o: 8 }[type] ?? 16);
  const prefix = spec.isAlternate && !isDecimal ? `0${type}` : "";
  const body = padded(
    type === "X" ? digits.toUpperCase() : digits,
    prefix,
    value < 0,
    spec,
    isDecimal ? 3 : 4,
  );
  return aligned(signText(value < 0, spec.sign) + prefix, body, spec, ">");
}

function formatReal(value: number, spec: Spec): string {
  const { type, precision } = spec;
  if (!"eEfFgG%".includes(type)) fail(`Unknown format code '${type}' for object of type 'float'`);
  const kind = type.toLowerCase();
  const isNegative = value < 0 || Object.is(value, -0);
  let text: string;
  if (type === "" && precision === null)
    text = spec.isAlternate ? plainFloat(value).replace(/^(\d+)(?=e)/, "$1.") : plainFloat(value);
  else if (type === "") text = formatFloat(value, "g", precision!, spec.isAlternate, true);
  else if (type === "%") text = `${formatFloat(value * 100, "f", precision ?? 6, spec.isAlternate)}%`;
  else text = formatFloat(value, kind as "e" | "f" | "g", precision ?? 6, spec.isAlternate);
  if (type !== "" && type !== "%" && type === type.toUpperCase()) text = text.toUpperCase();
  const body = Number.isFinite(value) ? padded(text, "", isNegative, spec, 3) : text;
  return aligned(signText(isNegative, spec.sign), body, spec, ">");
}

const signText = (isNegative: boolean, sign: string) => (isNegative ? "-" : sign === "-" ? "" : sign);

/** Adds separators, also to the zeros that fill the width. */
function padded(digits: string, prefix: string, isNegative: boolean, spec: Spec, size: number): string {
  if (spec.separator === "") return digits;
  const sign = signText(isNegative, spec.sign);
  let text = grouped(digits, spec.separator, size);
  if (spec.fill !== "0" || spec.align !== "=") return text;
  const width = spec.width - sign.length - prefix.length;
  for (let zeros = 1; text.length < width; zeros++)
    text = grouped("0".repeat(zeros) + digits, spec.separator, size);
  return text;
}

function aligned(sign: string, body: string, spec: Spec, defaultAlign: string): string {
  const missing = Math.max(0, spec.width - lengthOf(sign) - lengthOf(body));
  const left = { "<": 0, ">": missing, "=": missing, "^": missing >> 1 }[spec.align || defaultAlign]!;
  const fill = (count: number) => repeated(spec.fill, count);
  if (spec.align === "=") return sign + fill(missing) + body;
  return fill(left) + sign + body + fill(missing - left);
}
