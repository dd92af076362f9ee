import { describe, expect, it } from "vitest";
import * as z from "zod";
import { PeriodicEvalError } from "../errors.ts";
import { parseOptions } from "./parse-options.ts";

const schema = z.strictObject({
  maxSteps: z.int("a positive integer").positive("a positive integer").optional(),
  mode: z.enum(["fast", "exact"]).default("exact"),
  share: z.number().gt(0).max(1).optional(),
  judge: z.boolean().default(false),
  judge_model: z.string().optional(),
  judge_calls: z.int().optional(),
  budget: z
    .strictObject({
      percent: z.number().gt(1).optional(),
      seconds: z.number().nonnegative().meta({ fix: "Give seconds." }).optional(),
    })
    .optional(),
  phases: z.array(z.strictObject({ name: z.string() })).optional(),
  clock: z
    .custom<() => number>((value) => typeof value === "function", "a function that returns seconds")
    .optional(),
});

function errorOf(value: unknown): PeriodicEvalError {
  try {
    parseOptions("trainer options", schema, value);
  } catch (error) {
    if (PeriodicEvalError.is(error, "config")) return error;
  }
  throw new Error("parseOptions did not throw");
}

describe("parseOptions", () => {
  it("returns the options with their defaults and functions by reference", () => {
    const clock = () => 0;
    expect(parseOptions("trainer options", schema, { maxSteps: 3, clock })).toEqual({
      maxSteps: 3,
      mode: "exact",
      judge: false,
      clock,
    });
  });

  it.each([
    [{ maxStep: 3 }, ["maxStep"], `Did you mean "maxSteps"?`],
    [{ zebra: 3 }, ["zebra"], "Remove it."],
    [{ seconds: 3 }, ["seconds"], `Did you mean "budget.seconds"? Set budget: { seconds: 3 }.`],
    [{ budget: { second: 1 } }, ["budget", "second"], `Did you mean "seconds"?`],
    [{ phases: [{ name: "a" }, { nam: "b" }] }, ["phases", 1, "nam"], `Did you mean "name"?`],
    [{ maxSteps: "200" }, ["maxSteps"], "Remove the quotes."],
    [{ maxSteps: "-1" }, ["maxSteps"], "Correct the option."],
    [{ mode: "slow" }, ["mode"], "Correct the option."],
    [{ mode: "Exakt" }, ["mode"], 'Did you mean "exact"?'],
    [{ budget: { seconds: -1 } }, ["budget", "seconds"], "Give seconds."],
    [{ clock: 5 }, ["clock"], "Correct the option."],
    [{ share: "20%" }, ["share"], "Write 0.2."],
    [{ budget: { percent: "20 %" } }, ["budget", "percent"], "Write 20."],
    [{ maxSteps: "x%" }, ["maxSteps"], "Correct the option."],
    [{ budget: null }, ["budget"], "Indent its options by two spaces below it, or write {}."],
    [{ budget: "percent:20" }, ["budget"], "Write a space after the colon."],
    [
      { budget: [{ percent: 3 }] },
      ["budget"],
      "Write an object instead of a list: without the dashes in YAML, without the brackets in code.",
    ],
    [{ budget: ["percent"] }, ["budget"], "Write an object instead of a list: { percent: {} }."],
    [
      { phases: { name: "a" } },
      ["phases"],
      "Write a list: in YAML with a dash before each entry, in code in [ ].",
    ],
    [
      { judge: { model: "m", calls: 3, else: 1 } },
      ["judge"],
      "Write `judge: true` and next to it `judge_model`, `judge_calls`.",
    ],
    [{ judge: {} }, ["judge"], "Write `judge: true`."],
  ])("refuses %j with the path of the wrong option and a fix", (value, path, fix) => {
    const error = errorOf(value);
    expect(error.path).toEqual(path);
    expect(error.fix).toBe(fix);
    expect(error.where).toBe(
      `trainer options${path.map((key) => (typeof key === "number" ? `[${key}]` : `.${key}`)).join("")}`,
    );
  });

  it("counts an object with a transformation as an object of a union", () => {
    const words = z.strictObject({ words: z.string() }).transform(({ words: text }) => text);
    const refused = (union: z.ZodType, value: unknown) => () => parseOptions("row", union, value);
    expect(refused(z.union([z.boolean(), words]), { word: "a" })).toThrow('Did you mean "words"?');
    // Of two objects, neither says which keys are known.
    const either = z.union([z.strictObject({ text: z.string() }), words]);
    expect(refused(either, { words: "a", more: 1 })).toThrow(
      'row: got {"words":"a","more":1}, expected an object without "more".',
    );
  });

  it("quotes the value and the expectation of the schema", () => {
    expect(errorOf({ maxSteps: 0 })).toMatchObject({ got: "0", expected: "a positive integer" });
    expect(errorOf({ mode: "slow" })).toMatchObject({ got: `"slow"`, expected: `"fast" or "exact"` });
    expect(errorOf({ clock: 5 }).expected).toBe("a function that returns seconds");
  });

  it.each([[null], [[1]], ["text"], [undefined]])(
    "lists all options when it gets %j instead of an object",
    (value) => {
      expect(errorOf(value)).toMatchObject({
        path: [],
        expected: "an object (maxSteps, mode, share, judge, judge_model, judge_calls, budget, phases, clock)",
      });
    },
  );
});
