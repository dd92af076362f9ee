import { fail } from "./errors.ts";
import { formatFloat } from "./number-format.ts";
import { asInteger, asNumber, integerText, toFloat, toIndex, truncated } from "./numbers.ts";
import { codeEscape, repr, str } from "./print.ts";
import { characters, lengthOf } from "./text.ts";
import { Dict, Float, Range, Tuple, Undefined, isText, orElse, typeName, type Value } from "./values.ts";
import { repeated, spend } from "./work.ts";

const directive = /%(?:\(([^()]*)\))?([#0\- +]*)(\*|\d+)?(?:\.(\*|\d*))?[hlL]?([^]|$)/gu;

/** Python's `format % values`. */
export function percentFormat(format: string, values: Value): string {
  const args = values instanceof Tuple ? values.items : [values];
  let used = 0;
  const next = (): Value => {
    if (used >= args.length) fail("not enough arguments for format string");
    used += 1;
    return args[used - 1]!;
  };
  let usesKeys = false;
  const text = format.replace(
    directive,
    (
      whole,
      key: string | undefined,
      flags: string,
      width = "",
      precision: string | undefined,
      type: string,
    ) => {
      if (whole === "%%") return "%";
      if (key !== undefined && !(values instanceof Dict)) fail("format requires a mapping");
      if (key !== undefined) usesKeys = true;
      let size = width === "*" ? toIndex(next()) : Number(width);
      const isLeft = flags.includes("-") || size < 0;
      size = Math.abs(size);
      const limit =
        precision === undefined ? null : precision === "*" ? Math.max(0, toIndex(next())) : Number(precision);
      const value = key === undefined ? next() : orElse((values as Dict).get(key), () => fail(repr(key)));
      const { sign, body, isNumber } = converted(value, type, limit, flags);
      const missing = size - sign.length - lengthOf(body);
      if (isLeft) return sign + body + repeated(" ", missing);
      if (isNumber && flags.includes("0")) {
        const [, prefix = "", digits = ""] = /^(0[xXo])?([^]*)$/.exec(body)!;
        return sign + prefix + repeated("0", missing) + digits;
      }
      return repeated(" ", missing) + sign + body;
    },
  );
  spend(text.length);
  const isMapping = usesKeys || [Dict, Array, Undefined, Range].some((type) => values instanceof type);
  if (used < args.length && !isMapping) fail("not all arguments converted during string formatting");
  return text;
}

interface Converted {
  readonly sign: string;
  readonly body: string;
  readonly isNumber: boolean;
}

function converted(value: Value, type: string, limit: number | null, flags: string): Converted {
  if ("sra".includes(type) && type !== "") {
    const text = type === "s" ? str(value) : type === "r" ? repr(value) : ascii(repr(value));
    return {
      sign: "",
      body: limit === null ? text : characters(text).slice(0, limit).join(""),
      isNumber: false,
    };
  }
  if (type === "c") return { sign: "", body: oneCharacter(value), isNumber: false };
  if ("diuoxX".includes(type) && type !== "") return wholeNumber(value, type, limit, flags);
  if ("eEfFgG".includes(type) && type !== "") {
    const number = asNumber(value);
    if (number === undefined) {
      if (value instanceof Undefined) value.fail();
      return fail(`must be real number, not ${typeName(value)}`);
    }
    const real = toFloat(number);
    const body = formatFloat(real, type.toLowerCase() as "e" | "f" | "g", limit ?? 6, flags.includes("#"));
    return {
      sign: signOf(real < 0 || Object.is(real, -0), flags),
      body: type === type.toUpperCase() ? body.toUpperCase() : body,
      isNumber: true,
    };
  }
  return fail(type === "" ? "incomplete format" : `unsupported format character '${type}'`);
}

const signOf = (isNegative: boolean, flags: string) =>
  isNegative ? "-" : flags.includes("+") ? "+" : flags.includes(" ") ? " " : "";

function wholeNumber(value: Value, type: string, limit: number | null, flags: string): Converted {
  const isDecimal = "diu".includes(type);
  const whole = isDecimal && value instanceof Float ? truncated(value) : asInteger(value);
  if (whole === undefined) {
    if (value instanceof Undefined) value.fail();
    return fail(`%${type} format: a number is required, not ${typeName(value)}`);
  }
  const size = whole < 0 ? -BigInt(whole) : BigInt(whole);
  const digits = isDecimal ? integerText(size) : size.toString(type === "o" ? 8 : 16);
  const prefix = flags.includes("#") && !isDecimal ? (type === "o" ? "0o" : "0x") : "";
  const body = prefix + digits.padStart(limit ?? 0, "0");
  return { sign: signOf(whole < 0, flags), body: type === "X" ? body.toUpperCase() : body, isNumber: true };
}

function oneCharacter(value: Value): string {
  if (isText(value)) {
    if (lengthOf(str(value)) !== 1) fail("%c requires int or char");
    return str(value);
  }
  const code = asInteger(value);
  if (code === undefined) return fail("%c requires int or char");
  return codePoint(Number(code));
}

/** Python's `chr(code)`. */
export function codePoint(code: number): string {
  if (!(code >= 0 && code <= 0x10ffff)) fail("%c arg not in range(0x110000)");
  return String.fromCodePoint(code);
}

/** Replaces all characters beyond ASCII of a `repr` by escapes. */
export function ascii(text: string): string {
  return text.replace(/[^\p{ASCII}]/gu, (character) => codeEscape(character.codePointAt(0)!));
}
