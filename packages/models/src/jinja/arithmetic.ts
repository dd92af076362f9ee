import { fail, unsupported } from "./errors.ts";
import { asInteger, asNumber, integer, toFloat } from "./numbers.ts";
import { escapedText, percentFormat } from "./print.ts";
import {
  Float,
  Markup,
  Tuple,
  Undefined,
  DictView,
  isText,
  itemsOf,
  typeName,
  type Value,
} from "./values.ts";

export type Operator = keyof typeof ofIntegers;

/** Applies a binary operator of Python. */
export function calculate(left: Value, operator: Operator, right: Value): Value {
  if (operator === "%" && isText(left)) {
    if (left instanceof Markup) unsupported("% with text marked as safe");
    return percentFormat(left, right);
  }
  if (left instanceof Undefined) return left.fail();
  if (right instanceof Undefined) return right.fail();
  const [a, b] = [asInteger(left), asInteger(right)];
  const divides = operator === "/" || operator === "//" || operator === "%";
  if (a !== undefined && b !== undefined) {
    if (divides && Number(b) === 0) fail("integer division or modulo by zero");
    return ofIntegers[operator](BigInt(a), BigInt(b));
  }
  const [x, y] = [asNumber(left), asNumber(right)];
  if (x !== undefined && y !== undefined) {
    const [dividend, divisor] = [toFloat(x), toFloat(y)];
    if (divides && divisor === 0) fail("float division by zero");
    return new Float(ofFloats[operator](dividend, divisor));
  }
  const result =
    operator === "+" ? concatenated(left, right) : operator === "*" ? multiplied(left, right) : undefined;
  if (left instanceof DictView || right instanceof DictView) unsupported("a set");
  return (
    result ??
    fail(`unsupported operand type(s) for ${operator}: '${typeName(left)}' and '${typeName(right)}'`)
  );
}

const ofIntegers = {
  "+": (x: bigint, y: bigint): Value => integer(x + y),
  "-": (x: bigint, y: bigint): Value => integer(x - y),
  "*": (x: bigint, y: bigint): Value => integer(x * y),
  "/": quotient,
  "//": (x: bigint, y: bigint): Value => integer((x - modulo(x, y)) / y),
  "%": (x: bigint, y: bigint): Value => integer(modulo(x, y)),
};

/** The sign of Python's modulo is that of the divisor. */
function modulo(x: bigint, y: bigint): bigint {
  const rest = x % y;
  return rest !== 0n && rest < 0n !== y < 0n ? rest + y : rest;
}

/** Divides integers that JavaScript's numbers represent exactly. */
function quotient(x: bigint, y: bigint): Value {
  const [a, b] = [integer(x), integer(y)];
  if (typeof a === "bigint" || typeof b === "bigint") return unsupported("/ with an integer beyond 2^53");
  return new Float(a / b);
}

const ofFloats: Readonly<Record<Operator, (x: number, y: number) => number>> = {
  "+": (x, y) => x + y,
  "-": (x, y) => x - y,
  "*": (x, y) => x * y,
  "/": (x, y) => x / y,
  "//": floorQuotient,
  "%": floatModulo,
};

function floatModulo(x: number, y: number): number {
  const rest = x % y;
  if (rest === 0) return y < 0 ? -0 : 0;
  return rest < 0 !== y < 0 ? rest + y : rest;
}

/** As CPython's `float_divmod`. */
function floorQuotient(x: number, y: number): number {
  const rest = x % y;
  let exact = (x - rest) / y;
  if (rest !== 0 && rest < 0 !== y < 0) exact -= 1;
  if (exact === 0) return x / y < 0 || Object.is(x / y, -0) ? -0 : 0;
  const floor = Math.floor(exact);
  return exact - floor > 0.5 ? floor + 1 : floor;
}

function concatenated(left: Value, right: Value): Value | undefined {
  if (isText(left) && isText(right) && (left instanceof Markup || right instanceof Markup))
    return new Markup(
      [left, right].map((part) => (part instanceof Markup ? part.text : escapedText(part))).join(""),
    );
  if (typeof left === "string" && typeof right === "string") {
    return left + right;
  }
  const [a, b] = [itemsOf(left), itemsOf(right)];
  if (a === undefined || b === undefined || Array.isArray(left) !== Array.isArray(right)) return undefined;
  return Array.isArray(left) ? [...a, ...b] : new Tuple([...a, ...b]);
}

function multiplied(left: Value, right: Value): Value | undefined {
  const times = asInteger(right) ?? asInteger(left);
  if (times === undefined) return undefined;
  const value = asInteger(right) === undefined ? right : left;
  const count = Math.max(0, Number(times));
  if (value instanceof Markup) unsupported("* with text marked as safe");
  if (typeof value === "string") return value.repeat(count);
  const items = itemsOf(value);
  if (items === undefined) return undefined;
  const all = Array.from({ length: items.length * count }, (_, i) => items[i % items.length]!);
  return Array.isArray(value) ? all : new Tuple(all);
}

/** Applies `-` or `+` of Python to one operand. */
export function signed(operator: "-" | "+", value: Value): Value {
  if (value instanceof Undefined) return value.fail();
  if (value instanceof Float) return operator === "-" ? new Float(-value.value) : value;
  const whole = asInteger(value);
  if (whole === undefined) return fail(`bad operand type for unary ${operator}: '${typeName(value)}'`);
  return operator === "-" ? integer(-BigInt(whole)) : whole;
}
