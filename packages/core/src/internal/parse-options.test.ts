import { describe, expect, it } from "vitest";
import * as z from "zod";
import { PeriodicEvalError } from "../errors.ts";
import { parseOptions } from "./parse-options.ts";

const schema = z.strictObject({
  maxSteps: z.int("a positive integer").positive("a positive integer").optional(),
  mode: z.enum(["fast", "exact"]).default("exact"),
  budget: z
    .strictObject({ seconds: z.number().nonnegative().meta({ fix: "Give seconds." }).optional() })
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
      clock,
    });
  });

  it.each([
    [{ maxStep: 3 }, ["maxStep"], `Did you mean "maxSteps"?`],
    [{ zebra: 3 }, ["zebra"], "Remove it."],
    [{ seconds: 3 }, ["seconds"], `Did you mean "budget.seconds"? Set budget: { seconds }.`],
    [{ budget: { second: 1 } }, ["budget", "second"], `Did you mean "seconds"?`],
    [{ phases: [{ name: "a" }, { nam: "b" }] }, ["phases", 1, "nam"], `Did you mean "name"?`],
    [{ maxSteps: "200" }, ["maxSteps"], "Remove the quotes."],
    [{ maxSteps: "-1" }, ["maxSteps"], "Correct the option."],
    [{ mode: "slow" }, ["mode"], "Correct the option."],
    [{ mode: "Exakt" }, ["mode"], 'Did you mean "exact"?'],
    [{ budget: { seconds: -1 } }, ["budget", "seconds"], "Give seconds."],
    [{ clock: 5 }, ["clock"], "Correct the option."],
  ])("refuses %j with the path of the wrong option and a fix", (value, path, fix) => {
    const error = errorOf(value);
    expect(error.path).toEqual(path);
    expect(error.fix).toBe(fix);
    expect(error.where).toBe(
      `trainer options${path.map((key) => (typeof key === "number" ? `[${key}]` : `.${key}`)).join("")}`,
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
        expected: "an object (maxSteps, mode, budget, phases, clock)",
      });
    },
  );
});
