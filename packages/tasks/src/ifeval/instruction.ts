import { PeriodicEvalError } from "@periodic-eval/core";
import { isCount, nearest, quoteValue } from "@periodic-eval/core/internal";

/** The kwargs of one instruction, asked for by name. */
export interface KwargsReader {
  /** A text that is not blank. */
  readonly text: (name: string) => string;
  /** One or more texts, none blank. */
  readonly texts: (name: string) => readonly string[];
  /** A whole number of 1 or more. */
  readonly count: (name: string) => number;
  /** "at least" or "less than", and the number that it speaks of: whether a number found is so. */
  readonly bound: (relation: string, count: string) => (found: number) => boolean;
  /** @throws PeriodicEvalError `data` where a value is there that was not asked for. */
  readonly finish: () => void;
  readonly fail: (name: string, expected: string) => never;
}

/** `where` names file, line, document and instruction in errors, which are all of code `data`. */
export function readKwargs(given: unknown, where: string): KwargsReader {
  if (typeof given !== "object" || given === null || Array.isArray(given)) {
    throw wrong(
      where,
      quoteValue(given),
      "an object of kwargs",
      "Give every instruction its kwargs, {} where it has none.",
    );
  }
  const values = new Map(Object.entries(given));
  const asked = new Set<string>();
  const fail = (name: string, expected: string): never => {
    const got = values.has(name) ? `${name} = ${quoteValue(values.get(name))}` : `no ${name}`;
    throw wrong(where, got, `${name}: ${expected}`, `Give the kwargs a "${name}" that is so.`);
  };
  const read = <T>(name: string, expected: string, is: (value: unknown) => value is T): T => {
    asked.add(name);
    const value = values.get(name);
    return is(value) ? value : fail(name, expected);
  };
  const count = (name: string) => read(name, "a whole number of 1 or more", (value) => isCount(value, 1));
  return {
    text: (name) => read(name, "a text that is not blank", isFilled),
    texts: (name) => read(name, "one or more texts, none blank", isFilledList),
    count,
    bound(relation, name) {
      const isLess = read(relation, '"at least" or "less than"', isRelation) === "less than";
      const limit = count(name);
      return (found) => (isLess ? found < limit : found >= limit);
    },
    finish() {
      const extra = [...values.keys()].find((name) => !asked.has(name));
      if (extra === undefined) return;
      const close = nearest(extra, [...asked]);
      const expected = asked.size === 0 ? "no kwargs" : `only ${[...asked].join(", ")}`;
      throw wrong(
        where,
        `the unknown "${extra}"`,
        expected,
        close === null ? "Remove it." : `Did you mean "${close}"?`,
      );
    },
    fail,
  };
}

const isFilled = (value: unknown): value is string => typeof value === "string" && value.trim() !== "";

const isFilledList = (value: unknown): value is readonly string[] =>
  Array.isArray(value) && value.length > 0 && value.every(isFilled);

const isRelation = (value: unknown): value is string => value === "at least" || value === "less than";

const wrong = (where: string, got: string, expected: string, fix: string) =>
  new PeriodicEvalError({ code: "data", where, got, expected, fix });

/** Whether a response, not blank, does what it was told to. */
export type Check = (response: string) => boolean;

/**
 * Reads what an instruction was given and returns its check.
 *
 * @throws PeriodicEvalError `data` for kwargs that are wrong.
 */
export type InstructionKind = (kwargs: KwargsReader) => Check;
