import type { Json } from "@periodic-eval/core";
import { describe, expect, it } from "vitest";
import { benchmarkFolder } from "../benchmark-folder.test-data.ts";
import type { VerifierArgs } from "@periodic-eval/core/grading";
import type { VerifierSpec } from "./verifier-spec.ts";
import { openVerifiers } from "./open-verifiers.ts";

const live = () => ({ signal: new AbortController().signal });

/** Returns the reward and the reason of each completion. */
async function judged(verifier: VerifierSpec, answer: Json, completions: readonly string[], folder = "") {
  const grader = await openVerifiers(folder).open({ id: "t", answer, metadata: { level: 2 }, verifier });
  const requests = completions.map((one) => ({ question: "q", answer: one }));
  return grader.grade(requests, live());
}

/** Returns why the completion does not pass; null if it passes. */
async function reason(name: string, answer: Json, completion: string, args: VerifierArgs = {}) {
  const [verdict] = await judged({ name, args }, answer, [completion]);
  const passes = verdict!.raw === null;
  expect(verdict).toEqual({ status: "graded", scores: { reward: passes ? 1 : 0 }, raw: verdict!.raw });
  return verdict!.raw;
}

describe("exact_match", () => {
  it.each<readonly [answer: Json, completion: string, args: VerifierArgs, reason: string | null]>([
    ["Paris", " Paris\n", {}, null],
    ["Paris", "paris", {}, '"paris" is not "Paris"'],
    ["Paris", "PARIS", { ignore_case: true }, null],
    ["Paris", "Paris.", {}, '"Paris." is not "Paris"'],
    ["Paris", "Paris.", { ignore_punctuation: true }, null],
    [["four", "4"], "4", {}, null],
    [["four", "4"], "5", {}, '"5" is not "four" or "4"'],
    ["B", "Answer: A? No. Answer: B", { extract: "Answer: (\\w)" }, null],
    ["B", "It is B", { extract: "Answer: (\\w)" }, "nothing that `extract` finds"],
    ["B", "A B", { extract: "[A-D]" }, null],
  ])("%j of %j, %j: %j", async (answer, completion, args, expected) => {
    expect(await reason("exact_match", answer, completion, args)).toBe(expected);
  });
});

describe("contains", () => {
  it.each<readonly [answer: Json, completion: string, args: VerifierArgs, reason: string | null]>([
    ["mill", "the windmill", {}, null],
    ["Mill", "the windmill", {}, 'without "Mill"'],
    ["Mill", "the windmill", { ignore_case: true }, null],
    [["a", "z"], "abc", {}, null],
    [["x", "z"], "abc", {}, 'without "x" or "z"'],
    [["a", "z", "y"], "abc", { all: true }, 'without "z" and "y"'],
  ])("%j in %j, %j: %j", async (answer, completion, args, expected) => {
    expect(await reason("contains", answer, completion, args)).toBe(expected);
  });
});

describe("regex_match", () => {
  it.each<readonly [answer: string, completion: string, args: VerifierArgs, reason: string | null]>([
    ["\\d{4}", "in 1999.", {}, null],
    ["^\\d{4}$", "in 1999.", {}, 'no match of "^\\\\d{4}$"'],
    ["yes", "YES", { flags: "i" }, null],
    // Only a pattern with this flag can subtract a class.
    ["^[\\p{L}--[a-z]]$", "A", { flags: "v" }, null],
    ["^[\\p{L}--[a-z]]$", "a", { flags: "v" }, 'no match of "^[\\\\p{L}--[a-z]]$"'],
  ])("%j of %j, %j: %j", async (answer, completion, args, expected) => {
    expect(await reason("regex_match", answer, completion, args)).toBe(expected);
  });

  it("leaves a completion ungraded on which the pattern takes exponential time", async () => {
    const verifier = { name: "regex_match", args: {} };
    const verifiers = openVerifiers("", { one: 0.05, all: 0.05 });
    const grader = await verifiers.open({ id: "t", answer: "^(a+)+$", metadata: {}, verifier });
    const grade = (...answers: readonly string[]) =>
      grader.grade(
        answers.map((answer) => ({ question: "q", answer })),
        live(),
      );
    const slow = `${"a".repeat(50)}!`;
    const tooSlow = { status: "error", raw: expect.stringContaining("takes more than 0.05 s") };
    const notRun = { status: "error", raw: expect.stringContaining("not run, because the pattern") };
    expect(await grade("aa", slow, "aa")).toMatchObject([{ scores: { reward: 1 } }, tooSlow, notRun]);
    // The next call has the whole time again.
    expect(await grade(slow)).toMatchObject([tooSlow]);
  });

  it("returns the same verdict each time, because no match resumes where the last one ended", async () => {
    const verdicts = await judged({ name: "regex_match", args: {} }, "a", ["a", "a", "a"]);
    expect(verdicts.map(({ raw }) => raw)).toEqual([null, null, null]);
  });
});

describe("numeric", () => {
  it.each<readonly [answer: Json, completion: string, args: VerifierArgs, reason: string | null]>([
    [0.5, "1/2", {}, null],
    ["1/2", "0.5", {}, null],
    [1200, "That makes $1,200.", {}, null],
    // 0.3333 differs by 3.3e-5, a relative 1e-4 of 1/3: within rel_tol 1e-3, outside 1e-9.
    ["1/3", "0.3333", {}, '0.3333 is not "1/3" (rel_tol 1e-9, abs_tol 0)'],
    ["1/3", "0.3333", { rel_tol: 1e-3 }, null],
    // |0 − 1e-10| ≤ max(1e-9 · 1e-10, 0) does not hold, as in Python: math.isclose(0, 1e-10) is False
    [0, "1e-10", {}, "1e-10 is not 0 (rel_tol 1e-9, abs_tol 0)"],
    [0, "1e-10", { abs_tol: 1e-9 }, null],
    [3, "I cannot tell.", {}, "no number"],
    [42, "6 * 7 = 41, no, #### 42\nor 43", { extract: "#### (.*)" }, null],
    [42, "42", { extract: "#### (.*)" }, "nothing that `extract` finds"],
  ])("%j of %j, %j: %j", async (answer, completion, args, expected) => {
    expect(await reason("numeric", answer, completion, args)).toBe(expected);
  });
});

describe("json_schema", () => {
  const schema = { type: "object", properties: { age: { type: "integer" } }, required: ["age"] };
  it.each<readonly [completion: string, reason: string | null]>([
    ['{"age": 3}', null],
    ['Here you are:\n```json\n{"age": 3}\n```\nBye.', null],
    ['Sure: {"age": 3}.', null],
    ["The {age} is 3", "no JSON"],
    ['{"age": "3"}', "/age must be integer"],
    ["[]", "the value must be object"],
    // A list in prose is parsed as a whole, not as its first object; a footnote mark is not a list.
    ['Sure: [{"age": 3}].', "the value must be object"],
    ['As [1] says: {"age": 3}', null],
    ['[see {"age": 3}, "unclosed', null],
    // The last block is the answer.
    ['```\n{"age": "3"}\n```\nbetter:\n```\n{"age": 3}\n```', null],
  ])("%j: %j", async (completion, expected) => {
    expect(await reason("json_schema", schema, completion)).toBe(expected);
    expect(await reason("json_schema", null, completion, { schema })).toBe(expected);
  });
});

describe("json_schema of lists", () => {
  const schema = { type: "array", items: { type: ["string", "number", "object"] }, minItems: 2 };
  it.each<readonly [completion: string, reason: string | null]>([
    ['Sure: ["a", "b"].', null],
    ['Sure: [{"a": [1]}, {"b": "]"}] and [1].', null],
    ['Tags are ["a]", "\\"b"]', null],
    ["[note [1, 2] here]", null],
    ["Only [1] here", "the value must NOT have fewer than 2 items"],
    ['["a", "b"', "no JSON"],
  ])("%j: %j", async (completion, expected) => {
    expect(await reason("json_schema", schema, completion)).toBe(expected);
  });
});

describe("tool_calls_match", () => {
  const call = { name: "weather", arguments: { city: "Bern", days: 2, at: { lat: 1, lon: [2, 3] } } };
  const shuffled = '{"days": 2, "at": {"lon": [2, 3], "lat": 1}, "city": "Bern"}';
  const openAi = { id: "c1", type: "function", function: { name: "weather", arguments: shuffled } };
  const other = { name: "time", arguments: {} };
  it.each<readonly [answer: Json, completion: string, args: VerifierArgs, passes: boolean]>([
    [[call], JSON.stringify({ role: "assistant", content: null, tool_calls: [openAi] }), {}, true],
    [[openAi], JSON.stringify([call]), {}, true],
    [
      call,
      `I look it up.\n<tool_call>\n{"name": "weather", "arguments": ${shuffled}}\n</tool_call>`,
      {},
      true,
    ],
    [call, `{"name": "weather", "parameters": ${shuffled}}`, {}, true],
    [call, '{"name": "weather", "arguments": {"city": "Bern"}}', {}, false],
    [call, '{"name": "weather", "arguments": "{broken"}', {}, false],
    [call, "The weather is fine.", {}, false],
    [[call, other], JSON.stringify(other) + JSON.stringify(call), {}, true],
    [[call, other], JSON.stringify([other, call]), { ordered: true }, false],
    [[call, other], JSON.stringify([call, other]), { ordered: true }, true],
    [[call], JSON.stringify([call, call]), {}, false],
    [[], "No tool is needed.", {}, true],
    [[], JSON.stringify(other), {}, false],
    // A JSON object without a function name is not a call.
    [[call], `${JSON.stringify({ name: "Ann" })} ${JSON.stringify(call)}`, {}, true],
  ])("%j of %s, %j: %j", async (answer, completion, args, passes) => {
    expect((await reason("tool_calls_match", answer, completion, args)) === null).toBe(passes);
  });
});

describe("a custom verifier", () => {
  const source = `
    export const check = (completion, task) => completion === task.answer;
    export const echo = async (_, task) => ({ reward: 0.5, raw: JSON.stringify(task) });
    export const length = (completion) => completion.length;
    export const strict = () => ({ reward: 2, passed: false });
    export const throwing = (completion) => { if (completion === "bad") throw new Error("cannot read it"); return true; };
    export const silent = () => {};
    export const nan = () => NaN;
    export const grader = {
      name: "mine", fingerprint: "f",
      grade: async (requests) => requests.map(({ answer }) => ({ status: "graded", scores: { reward: answer.length }, raw: "read" })),
    };
  `;
  const verdicts = async (name: string, completions: readonly string[], args: VerifierArgs = {}) => {
    const folder = await benchmarkFolder({ files: { "own.mjs": source } });
    return judged({ module: "own.mjs", export: name, args }, "yes", completions, folder);
  };

  it("can return true or false, a number, or an object with a reward", async () => {
    const graded = (scores: object, raw: string | null = null) => ({ status: "graded", scores, raw });
    expect(await verdicts("check", ["yes", "no"])).toEqual([graded({ reward: 1 }), graded({ reward: 0 })]);
    expect(await verdicts("length", ["abc"])).toEqual([graded({ reward: 3 })]);
    expect(await verdicts("strict", ["abc"])).toEqual([graded({ reward: 2, passed: 0 })]);
    const seen = '{"id":"t","question":"q","answer":"yes","metadata":{"level":2},"args":{"strict":true}}';
    expect(await verdicts("echo", ["abc"], { strict: true })).toEqual([graded({ reward: 0.5 }, seen)]);
  });

  it("leaves a completion ungraded if it throws, and grades the others", async () => {
    expect(await verdicts("throwing", ["good", "bad", "good"])).toEqual([
      { status: "graded", scores: { reward: 1 }, raw: null },
      { status: "error", raw: "cannot read it" },
      { status: "graded", scores: { reward: 1 }, raw: null },
    ]);
  });

  it("leaves a completion ungraded if it returns an invalid verdict", async () => {
    const expected = "neither true, false, a number nor { reward, passed, raw }";
    expect(await verdicts("silent", ["x"])).toEqual([
      { status: "error", raw: `the verifier gave undefined, ${expected}` },
    ]);
    expect((await verdicts("nan", ["x"]))[0]).toMatchObject({ status: "error" });
  });

  it("can be a grader from core, which is called unchanged", async () => {
    expect(await verdicts("grader", ["abc"])).toEqual([
      { status: "graded", scores: { reward: 3 }, raw: "read" },
    ]);
  });

  it("stops when the signal aborts, even if the function never returns", async () => {
    const folder = await benchmarkFolder({
      files: { "own.mjs": "export const f = () => new Promise(() => {});" },
    });
    const verifier = { module: "own.mjs", export: "f", args: {} };
    const grader = await openVerifiers(folder).open({ id: "t", answer: null, metadata: {}, verifier });
    const abort = new AbortController();
    const grading = grader.grade([{ question: "q", answer: "a" }], { signal: abort.signal });
    abort.abort(new Error("enough"));
    await expect(grading).rejects.toThrow("enough");
  });
});
