import {
  dataError,
  didYouMean,
  isCount,
  isFilled,
  isFilledList,
  isRecord,
  quoteValue,
} from "@periodic-eval/contracts/options";

/** Reads the kwargs of one instruction by name, and checks them. */
export interface KwargsReader {
  /** Returns a string that is not blank. */
  readonly text: (name: string) => string;
  /** Returns one or more strings that are not blank. */
  readonly texts: (name: string) => readonly string[];
  /** Returns a positive integer. */
  readonly count: (name: string) => number;
  /** Reads a relation ("at least" or "less than") and its number; returns a function that checks a count against them. */
  readonly bound: (relation: string, count: string) => (found: number) => boolean;
  /** @throws PeriodicEvalError `data` if a kwarg was not read. */
  readonly finish: () => void;
  readonly fail: (name: string, expected: string) => never;
}

/**
 * Returns a reader of an instruction's kwargs, whose errors have code `data`.
 *
 * @param where File, line, document and instruction, for errors.
 */
export function readKwargs(given: unknown, where: string): KwargsReader {
  if (!isRecord(given)) {
    const fix = "Write kwargs for every instruction, {} if it has none.";
    throw dataError(where, quoteValue(given), "an object of kwargs", fix);
  }
  const values = new Map(Object.entries(given));
  const asked = new Set<string>();
  const fail = (name: string, expected: string): never => {
    const got = values.has(name) ? `${name} = ${quoteValue(values.get(name))}` : `no ${name}`;
    throw dataError(where, got, `${name}: ${expected}`, `Correct "${name}" in the kwargs.`);
  };
  const read = <T>(name: string, expected: string, is: (value: unknown) => value is T): T => {
    asked.add(name);
    const value = values.get(name);
    return is(value) ? value : fail(name, expected);
  };
  const count = (name: string) => read(name, "a positive integer", (value) => isCount(value, 1));
  return {
    text: (name) => read(name, "a string that is not blank", isFilled),
    texts: (name) => read(name, "one or more strings that are not blank", isFilledList),
    count,
    bound(relation, name) {
      const isLess = read(relation, '"at least" or "less than"', isRelation) === "less than";
      const limit = count(name);
      return (found) => (isLess ? found < limit : found >= limit);
    },
    finish() {
      const extra = [...values.keys()].find((name) => !asked.has(name));
      if (extra === undefined) return;
      const expected = asked.size === 0 ? "no kwargs" : `only ${[...asked].join(", ")}`;
      const fix = didYouMean(extra, [...asked]) ?? "Remove it.";
      throw dataError(where, `the unknown "${extra}"`, expected, fix);
    },
    fail,
  };
}

const isRelation = (value: unknown): value is string => value === "at least" || value === "less than";

/** Returns whether a response that is not blank follows the instruction. */
export type Check = (response: string) => boolean;

/**
 * Reads an instruction's kwargs and returns its check.
 *
 * @throws PeriodicEvalError `data` for wrong kwargs.
 */
export type InstructionKind = (kwargs: KwargsReader) => Check;
