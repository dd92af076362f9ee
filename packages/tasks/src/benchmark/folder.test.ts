import { PeriodicEvalError } from "@periodic-eval/core";
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { benchmarkFolder, errorsOf } from "./benchmark-folder.test-data.ts";
import { readBenchmark } from "./folder.ts";

const task = { id: "a", prompt: "1 + 1 =", answer: "2", split: "val", verifier: "exact_match" };

describe("a folder", () => {
  it("is read in the file's order, with defaults from metadata.yaml", async () => {
    const folder = await benchmarkFolder({
      metadata:
        'name: sums\nversion: "2"\ndescription: two\nsplit: test\nverifier: { name: numeric, args: { abs_tol: 1 } }\n',
      tasks: [
        { id: "b", prompt: "2 + 2 =", answer: 4, metadata: { level: 1 } },
        "",
        {
          ...task,
          messages: [
            { role: "system", content: "Add." },
            { role: "user", content: "?" },
          ],
          prompt: undefined,
        },
      ],
    });
    const { name, version, tasks, places } = await readBenchmark(folder);
    expect([name, version]).toEqual(["sums", "2"]);
    expect(tasks).toEqual([
      {
        id: "b",
        messages: [{ role: "user", content: "2 + 2 =" }],
        split: "test",
        verifier: { name: "numeric", args: { abs_tol: 1 } },
        answer: 4,
        metadata: { level: 1 },
      },
      {
        id: "a",
        messages: [
          { role: "system", content: "Add." },
          { role: "user", content: "?" },
        ],
        split: "val",
        verifier: { name: "exact_match", args: {} },
        answer: "2",
        metadata: {},
      },
    ]);
    expect(places.get("a")).toBe(`${join(folder, "tasks.jsonl")}:3`);
  });

  it("has hashes of both files, and a verifier hash that changes with the module", async () => {
    const own = { ...task, verifier: { module: "./check.mjs", export: "check" } };
    const folder = await benchmarkFolder({
      tasks: [own],
      files: { "check.mjs": "export const check = () => true;\n" },
    });
    const before = await readBenchmark(folder);
    expect(Object.keys(before.hashes)).toEqual(["tasks.jsonl", "metadata.yaml"]);
    expect(Object.keys(before.verifiers)).toEqual(["./check.mjs#check"]);
    expect((await readBenchmark(folder)).verifiers).toEqual(before.verifiers);
    await writeFile(join(folder, "check.mjs"), "export const check = () => false;\n");
    expect((await readBenchmark(folder)).verifiers).not.toEqual(before.verifiers);
  });
});

describe("an invalid folder", () => {
  /** Returns the message of each error: `tasks.jsonl:2: got …`. */
  const wrongs = async (tasks: readonly (object | string)[], metadata?: string, files = {}) => {
    const folder = await benchmarkFolder({ tasks, files, ...(metadata !== undefined && { metadata }) });
    const errors = await errorsOf(readBenchmark(folder));
    expect(errors.every((error) => PeriodicEvalError.is(error, "data"))).toBe(true);
    return errors.map(({ message }) => message.replaceAll(`${folder}/`, "").replace("[periodic-eval] ", ""));
  };

  it.each(["tasks.jsonl", "metadata.yaml"])("rejects a Latin-1 encoded %s", async (file) => {
    const folder = await benchmarkFolder({ tasks: [task] });
    const texts = { "tasks.jsonl": JSON.stringify(task), "metadata.yaml": "name: sums" };
    const text = `${texts[file as keyof typeof texts]}\n# caf\u00e9\n`;
    await writeFile(join(folder, file), Buffer.from(text, "latin1"));
    await expect(readBenchmark(folder)).rejects.toThrow(
      `${join(folder, file)}:2: got bytes that are not UTF-8 (0xe9 at byte 6), expected a text file in UTF-8`,
    );
  });

  it("reports all invalid lines together, each with its file and line number", async () => {
    const said = await wrongs([
      "{ id: 1 }",
      "[1]",
      { ...task, id: "" },
      { ...task, id: "c", prompt: " " },
      { ...task, id: "d", messages: [] },
      { id: "e", answer: "2", split: "val", verifier: "exact_match" },
      { ...task, id: "f", split: "train" },
      { ...task, id: "g", split: undefined, verifier: undefined },
      { ...task, id: "h", verifer: "numeric", metadata: [] },
      task,
      { ...task, prompt: "again" },
    ]);
    expect(said).toEqual([
      expect.stringMatching(/^tasks\.jsonl:1: got invalid JSON \(.*, expected JSON\. Write one/s),
      "tasks.jsonl:2: got [1], expected an object of names and values. Write one object per row.",
      'tasks.jsonl:3: got id = "", expected id: a string. Add an id to the line.',
      'tasks.jsonl:4: got prompt = " ", expected prompt: a non-empty string. Write the prompt.',
      "tasks.jsonl:5: got both, expected prompt or messages. Add a prompt, or the messages of a chat, to the line.",
      "tasks.jsonl:6: got no prompt (keys: id, answer, split, verifier), expected prompt or messages. Add a prompt, or the messages of a chat, to the line.",
      'tasks.jsonl:7: got split = "train", expected split: val or test. Add a split to the line, or to metadata.yaml for all lines.',
      "tasks.jsonl:8: got no split (keys: id, prompt, answer), expected split: val or test. Add a split to the line, or to metadata.yaml for all lines.",
      "tasks.jsonl:8: got no verifier (keys: id, prompt, answer), expected verifier: a name, { name, args } or { module, export, args }. Add a verifier to the line, or to metadata.yaml for all lines.",
      'tasks.jsonl:9: got the unknown key "verifer", expected some of id, prompt, messages, answer, split, verifier, metadata. Did you mean "verifier"?',
      "tasks.jsonl:9: got metadata = [], expected metadata: an object. Write { key: value }.",
      'tasks.jsonl:11: got the id "a", which tasks.jsonl:10 also has, expected unique ids. Rename one of the two.',
    ]);
  });

  it.each([
    [
      [
        { role: "user", content: "?" },
        { role: "assistant", content: "!" },
      ],
      "expected messages: the user's message last",
    ],
    [
      [
        { role: "user", content: "?" },
        { role: "system", content: "!" },
        { role: "user", content: "?" },
      ],
      "a system message only first",
    ],
    [
      [{ role: "usr", content: "?" }],
      'got messages[0].role = "usr", expected messages[0].role: "system" or "user" or "assistant"',
    ],
    ["hello", 'got messages = "hello"'],
  ])("reports an invalid chat: %j", async (messages, expected) => {
    const [said] = await wrongs([{ ...task, prompt: undefined, messages }]);
    expect(said).toMatch(/^tasks\.jsonl:1: /);
    expect(said).toContain(expected);
  });

  it.each<readonly [verifier: unknown, answer: unknown, expected: string]>([
    [
      "exact_mach",
      "2",
      'verifier: got "exact_mach", expected one of exact_match, contains, regex_match, numeric, json_schema, tool_calls_match, or { module, export }. Did you mean "exact_match"?',
    ],
    [
      { name: "numeric", rel_tol: 1 },
      2,
      'verifier.rel_tol: got the unknown option "rel_tol", expected one of name, args. Remove it.',
    ],
    [
      { name: "numeric", args: { rel_tool: 1 } },
      2,
      'args.rel_tool: got the unknown argument "rel_tool", expected one of abs_tol, extract, rel_tol. Did you mean "rel_tol"?',
    ],
    [
      { name: "numeric", args: { rel_tol: -1 } },
      2,
      "args.rel_tol: got -1, expected a number of 0 or more. Leave it out for 1e-9.",
    ],
    [
      "numeric",
      "two",
      'answer: got "two", expected a number, or an expression such as "1/2". Write the number.',
    ],
    [
      "exact_match",
      2,
      "answer: got 2, expected a non-empty string, or an array of them. Put it in quotes, or use the verifier numeric.",
    ],
    [{ name: "contains", args: { all: "yes" } }, "2", 'args.all: got "yes", expected true or false'],
    [
      "numeric",
      true,
      'answer: got true, expected a number, or an expression such as "1/2". Write the number.',
    ],
    [
      "regex_match",
      "(",
      'answer: got "(", expected a JavaScript pattern. Write a JavaScript pattern without',
    ],
    [
      { name: "numeric", args: { extract: "(" } },
      2,
      'args.extract: got "(", expected a JavaScript pattern. Write a JavaScript pattern without',
    ],
    [
      { name: "regex_match", args: { flags: "u" } },
      "\\-",
      "expected a JavaScript pattern with the flags u. Write a JavaScript pattern without",
    ],
    [
      { name: "regex_match", args: { flags: "g" } },
      "2",
      'args.flags: got "g", expected some of i, m, s, u, v. Remove other flags, such as g and y.',
    ],
    ["json_schema", { type: "nonsense" }, 'answer: got {"type":"nonsense"} (schema is invalid'],
    ["json_schema", null, "answer: got null, expected a JSON Schema"],
    [
      { name: "json_schema", args: { schema: {} } },
      {},
      "answer: got {}, expected no answer together with args.schema",
    ],
    ["tool_calls_match", { tool: "f" }, 'answer: got {"tool":"f"}, expected tool calls'],
    [
      { module: "../x.mjs", export: "check" },
      "2",
      'verifier.module: got "../x.mjs", expected a path relative to the benchmark\'s folder, and inside it',
    ],
    [
      { module: "./x.mjs" },
      "2",
      "verifier.export: got undefined, expected the name of an export of the module",
    ],
    [
      { module: "./missing.mjs", export: "check" },
      "2",
      'verifier.module: got "./missing.mjs", which does not exist, expected a module at that path. Correct the path, which is relative to the folder of the file that names it',
    ],
    [
      { name: "exact_match", args: { ignore_punctuation: true } },
      ["yes", "?!"],
      'answer: got "?!", expected more than punctuation, because ignore_punctuation is true',
    ],
    ["numeric", "1 000 000", 'answer: got "1 000 000", expected a number'],
    ["numeric", "1.000.000", 'answer: got "1.000.000", expected a number'],
    [
      { module: "./broken.mjs", export: "check" },
      "2",
      'verifier.module: got "./broken.mjs", which fails to load',
    ],
    [
      { module: "./check.mjs", export: "chek" },
      "2",
      'verifier.export: got "chek", which the module does not export, expected a function or a grader (it exports check, word). Did you mean "check"?',
    ],
    [
      { module: "./check.mjs", export: "word" },
      "2",
      'verifier.export: got "word", string, expected a function or a grader',
    ],
  ])("reports a wrong verifier: %j of %j", async (verifier, answer, expected) => {
    const files = {
      "check.mjs": 'export const check = () => true;\nexport const word = "x";\n',
      "broken.mjs": "export const check = ;\n",
    };
    const [said, ...others] = await wrongs(
      [
        { ...task, id: "x" },
        { ...task, verifier, answer },
      ].reverse(),
      undefined,
      files,
    );
    expect(others).toEqual([]);
    expect(said).toContain("tasks.jsonl:1 ");
    expect(said).toContain(expected);
  });

  it("reports errors in metadata.yaml with their lines, together with errors in tasks.jsonl", async () => {
    const metadata = "name: sums\nversion: 2\nsplits: val\nsplit: train\nverifier: numerc\ndescription:\n";
    expect(await wrongs([{ ...task, id: 1 }], metadata)).toEqual([
      'metadata.yaml:3: got the unknown key "splits", expected some of name, version, description, split, verifier. Did you mean "split"?',
      "metadata.yaml:2: got version = 2, expected version: a string. Put it in quotes.",
      "metadata.yaml:6: got description = null, expected description: a string. Write it in quotes.",
      'metadata.yaml:4: got split = "train", expected split: val or test. Correct it, or leave it out.',
      expect.stringMatching(/^metadata\.yaml:5 verifier: got "numerc".*Did you mean "numeric"\?$/),
      "tasks.jsonl:1: got id = 1, expected id: a string. Put it in quotes.",
    ]);
    expect(await wrongs([task], "- sums\n")).toEqual([
      expect.stringContaining('metadata.yaml: got ["sums"], expected an object with name and version'),
    ]);
    expect(await wrongs([task], "name: [\n")).toEqual([
      expect.stringMatching(/^metadata\.yaml:2: got .*, expected YAML or JSON/),
    ]);
    expect((await wrongs([], "{}"))[2]).toBe(
      'tasks.jsonl: got no tasks, expected one task per line. Write lines such as {"id": "t1", "prompt": "…", "answer": "…"}.',
    );
  });

  it("names the missing file", async () => {
    const folder = await benchmarkFolder({ tasks: [task] });
    await rm(join(folder, "metadata.yaml"));
    await expect(readBenchmark(folder)).rejects.toThrow(/metadata\.yaml", which does not exist/);
    await rm(join(folder, "tasks.jsonl"));
    await expect(readBenchmark(folder)).rejects.toThrow(/tasks\.jsonl", which does not exist/);
  });

  it("lists twenty errors in its message, and keeps all in `errors`", async () => {
    const folder = await benchmarkFolder({ tasks: Array.from({ length: 25 }, () => ({ id: 1 })) });
    const error = await readBenchmark(folder).catch((reason: unknown) => reason);
    // Each line has four errors: no id, no prompt, no split, no verifier.
    expect((error as AggregateError).errors).toHaveLength(100);
    expect((error as AggregateError).message.split("\n")).toHaveLength(21);
    expect((error as AggregateError).message).toMatch(/\nand 80 more$/);
  });
});
