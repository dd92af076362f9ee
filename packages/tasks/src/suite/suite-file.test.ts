import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "vitest";
import {
  defaultSuitePath,
  hashOfSuite,
  parseSuite,
  readSuite,
  smokeOf,
  taskOptionsOf,
} from "./suite-file.ts";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";

const at = (given: string) => ({ given, folder: "." });
const parse = (value: object) =>
  parseSuite({ schema_version: 1, name: "s", tasks: { mmlu: {} }, ...value }, "s.yaml");

it("reads the default suite with the documented tasks and settings", async () => {
  const suite = await readSuite(defaultSuitePath);
  const all = Object.entries(suite.tasks).map((entry) => taskOptionsOf(suite, entry, at("/data")));
  const common = { fewshotSeed: 1234, subsample: null };
  expect(all).toEqual([
    { ...common, data: "/data/mmlu", shots: 5, limit: 1000 },
    { ...common, data: "/data/gsm8k", shots: 8, limit: null },
    { ...common, data: "/data/truthfulqa", shots: 0, limit: null },
    { ...common, data: "/data/ifeval", shots: 0, limit: null },
  ]);
  expect(Object.keys(suite.tasks)).toEqual(["mmlu", "gsm8k", "truthfulqa_mc2", "ifeval"]);
});

it("limits a smoke run to 10 documents per task, drawn with the suite's seed, or fewer if the suite has fewer", () => {
  const smoke = smokeOf(parse({ seed: 7, tasks: { mmlu: { limit: 1000 }, few: { subsample: 3 } } }));
  const options = Object.entries(smoke.tasks).map((entry) => taskOptionsOf(smoke, entry, at(".")));
  expect(options).toMatchObject([
    { limit: 1000, subsample: { n: 10, seed: 7 } },
    { limit: null, subsample: { n: 3, seed: 7 } },
  ]);
});

it("limits a suite's further evaluations in a smoke run, and hashes them", () => {
  const entry = { win_rate: "prompts.jsonl", reference: "m" };
  const suite = parse({ evaluations: [entry, { ...entry, limit: 3 }] });
  expect(smokeOf(suite).evaluations).toEqual([
    { ...entry, limit: 10 },
    { ...entry, limit: 3 },
  ]);
  expect(hashOfSuite(suite)).not.toBe(hashOfSuite(parse({})));
  expect(smokeOf(parse({}))).not.toHaveProperty("evaluations");
});

it("leaves evaluations without the option `limit` whole in a smoke run", () => {
  const entry = { feedback: "logprob", preference: "concise" };
  expect(smokeOf(parse({ evaluations: [entry] })).evaluations).toEqual([entry]);
});

it("prefers a task's chat settings to the suite's, and reads null as plain text", () => {
  const suite = parse({
    chat: { system: "Be brief." },
    tasks: { a: {}, b: { chat: null }, c: { chat: { fewshot_as_multiturn: false } } },
  });
  const chats = Object.entries(suite.tasks).map((entry) => taskOptionsOf(suite, entry, at(".")).chat);
  expect(chats).toEqual([{ system: "Be brief." }, undefined, { fewshotAsMultiturn: false }]);
});

it("resolves relative paths against the data folder, and keeps absolute paths and hub names", () => {
  const suite = parse({
    tasks: { a: { data: "b" }, c: { data: "/d/c", fewshot_pool: "c/train.jsonl" }, e: { data: "hf:o/e" } },
  });
  const options = Object.entries(suite.tasks).map((entry) => taskOptionsOf(suite, entry, at("/data")));
  expect(options.map(({ data, fewshotPool }) => [data, fewshotPool])).toEqual([
    ["/data/b", undefined],
    ["/d/c", "/data/c/train.jsonl"],
    ["hf:o/e", undefined],
  ]);
});

it("hashes only the given settings, not the name, the order or the defaults", () => {
  const hash = (value: object) => hashOfSuite(parse(value));
  const one = hash({ tasks: { a: { shots: 1, limit: 2 }, b: {} } });
  expect(hash({ name: "t", seed: 42, tasks: { b: { limit: null }, a: { limit: 2, shots: 1 } } })).toBe(one);
  const others = [
    { seed: 43, tasks: { a: { shots: 1, limit: 2 }, b: {} } },
    { tasks: { a: { shots: 1, limit: 3 }, b: {} } },
    { tasks: { a: { shots: 2, limit: 2 }, b: {} } },
    { tasks: { a: { shots: 1, limit: 2 } } },
    { chat: {}, tasks: { a: { shots: 1, limit: 2 }, b: {} } },
  ];
  expect(new Set([one, ...others.map(hash)]).size).toBe(6);
  const whole = parse({ tasks: { a: { subsample: 10 } } });
  expect(hashOfSuite(smokeOf(whole))).not.toBe(hashOfSuite(whole));
});

it.each<[object, string]>([
  [{ task: {} }, 's.yaml: suite.task: got the unknown option "task", expected one of'],
  [{ tasks: { mmlu: { shot: 5 } } }, 's.yaml: suite.tasks.mmlu.shot: got the unknown option "shot"'],
  [
    { tasks: { mmlu: { shots: -1 } } },
    "s.yaml: suite.tasks.mmlu.shots: got -1, expected an integer of 0 or more",
  ],
  [{ tasks: { mmlu: { limit: 0 } } }, "s.yaml: suite.tasks.mmlu.limit: got 0, expected a positive integer"],
  [{ tasks: { mmlu: { limit: 0.5 } } }, "tasks.mmlu.limit: got 0.5"],
  [{ tasks: { mmlu: null } }, "s.yaml: suite.tasks.mmlu: got null, expected an object of settings"],
  [{ tasks: { "../mmlu": {} } }, 's.yaml: suite.tasks: got "../mmlu", expected a name'],
  [{ tasks: {} }, "s.yaml: suite.tasks: got {}, expected at least one task"],
  [{ tasks: ["mmlu"] }, 's.yaml: suite.tasks: got ["mmlu"], expected an object of tasks'],
  [{ chat: "yes" }, 's.yaml: suite.chat: got "yes", expected null for plain text, or an object'],
  [{ schema_version: 2 }, "s.yaml: suite.schema_version: got 2, expected 1"],
])("refuses %j", (value, says) => {
  expect(() => parse(value)).toThrow(says);
});

it("reports invalid YAML with its line, and a missing file", async () => {
  const folder = temporaryFolder();
  const path = join(folder, "suite.yaml");
  await writeFile(path, "schema_version: 1\nname: [\n");
  await expect(readSuite(path)).rejects.toThrow(/suite\.yaml:3: got /);
  await writeFile(path, "- mmlu\n");
  await expect(readSuite(path)).rejects.toThrow('got ["mmlu"], expected an object (schema_version');
  await expect(readSuite(join(folder, "none.yaml"))).rejects.toThrow("which does not exist");
});
