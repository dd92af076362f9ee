import { describe, expect, it } from "vitest";
import { LineCounter } from "yaml";
import { parseYaml } from "./parse-yaml.ts";

/** Returns the message of the first error and its line. */
function faultOf(text: string): string | null {
  const lines = new LineCounter();
  const [fault] = parseYaml(text, lines).errors;
  return fault === undefined ? null : `${lines.linePos(fault.pos[0]).line}: ${fault.message}`;
}

describe("parseYaml", () => {
  it.each([
    ["a key twice", "a: 1\nb: 2\r\na: 3", "3: Map keys must be unique"],
    ["keys that are equal as strings", 'a:\n  1: x\n  "1": y', "3: Map keys must be unique"],
    ["true and its string as keys", "true: x\n'true': y", "2: Map keys must be unique"],
    ["an object as a key", "a: 1\n? {b: 1}\n: x", "2: a key that is not a string"],
    ["an alias as a key", "a: &a 1\n*a : x", "2: a key that is not a string"],
    ["infinity", "a: 1\nb: .inf", "2: the number .inf, which JSON cannot hold"],
    ["NaN", "a:\n- .nan", "2: the number .nan, which JSON cannot hold"],
    ["a number beyond floats", "a: 1e400", "1: the number 1e400, which JSON cannot hold"],
    ["a rounded integer", "a: 9007199254740993", "1: the number 9007199254740993, which JSON cannot hold"],
    ["an unknown tag", "a: 1\nb: !!js/function 'x'", "2: Unresolved tag: tag:yaml.org,2002:js/function"],
    ["a set", "a: !!set {b, c}", "1: Unresolved tag: tag:yaml.org,2002:set"],
    ["an alias in its own value", "a: 1\nb: &b {c: [*b]}", "2: the alias *b in its own value"],
    ["half of a surrogate pair", 'a: 1\nb: "\\ud800"', "2: half of a surrogate pair"],
    ["half of a surrogate pair as a key", '"\\udc00": 1', "1: half of a surrogate pair"],
    ["bytes", "a: !!binary aGVsbG8=", "1: Unresolved tag: tag:yaml.org,2002:binary"],
  ])("reports %s with its line", (_, text, fault) => {
    expect(faultOf(text)).toBe(fault);
  });

  it("reports brackets that exhaust the stack", () => {
    expect(faultOf("[".repeat(100_000))).toContain("Maximum call stack size exceeded");
  });

  it("accepts merged maps, numbers, strings of digits and an empty file", () => {
    expect(faultOf('a: "\\ud83d\\ude42"\nb: &b [1, &c 2]\nd: [*b, *c]')).toBe(null);
    const text = "a: &a { b: 1, c: -0.5 }\nd: { <<: *a, b: 1e300 }\ne: '9007199254740993'\nf: 0x1F\n";
    expect(faultOf(text)).toBe(null);
    expect(parseYaml(text, new LineCounter()).toJS()).toMatchObject({ d: { b: 1e300, c: -0.5 }, f: 31 });
    expect(faultOf("")).toBe(null);
  });
});
