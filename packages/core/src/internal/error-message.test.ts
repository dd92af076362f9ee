import { expect, it } from "vitest";
import { PeriodicEvalError } from "../errors.ts";
import { errorMessage } from "./error-message.ts";

const refuse = () => {
  throw new Error("trap");
};
const traps: ProxyHandler<object> = Object.fromEntries(
  Object.getOwnPropertyNames(Reflect).map((trap) => [trap, refuse]),
);
const revoked = Proxy.revocable({}, {});
revoked.revoke();
const without = (message: unknown) =>
  Object.defineProperty(new Error("lost"), "message", { get: () => message });
const throwing = Object.defineProperty(new Error("lost"), "message", { get: refuse });

it.each([
  ["an error", new Error("no disk"), "no disk"],
  ["a string", "no disk", "no disk"],
  ["undefined", undefined, "undefined"],
  ["null", null, "null"],
  ["a symbol", Symbol("s"), "Symbol(s)"],
  ["a bigint", 1n, "1"],
  [
    "an object without a prototype",
    Object.assign(Object.create(null) as object, { code: 1 }),
    /\{"code":1\}$/,
  ],
  ["a proxy that throws on every trap", new Proxy({}, traps), /cannot be shown/],
  ["a proxy of a function that throws on every trap", new Proxy(() => undefined, traps), /cannot be shown/],
  ["a revoked proxy", revoked.proxy, /cannot be shown/],
  ["an object whose toString throws", { toString: refuse }, /cannot be shown/],
  [
    "an object whose toString returns an object",
    { toString: () => ({}), valueOf: () => ({}) },
    /cannot be shown/,
  ],
  ["an error whose message is a symbol", without(Symbol("m")), "Symbol(m)"],
  ["an error whose message is a proxy that throws", without(new Proxy({}, traps)), /cannot be shown/],
  ["an error whose message throws", throwing, /cannot be shown/],
  [
    "an object whose toJSON throws",
    Object.assign(Object.create(null) as object, { toJSON: refuse }),
    /cannot be shown/,
  ],
])("returns a string for %s", (_, thrown, message) => {
  expect(errorMessage(thrown)).toMatch(message);
  expect(PeriodicEvalError.is(thrown)).toBe(false);
});
