import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { existsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readMetrics, type MetricsRun } from "@periodic-eval/tasks";
import { parquetWriteBuffer } from "hyparquet-writer";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { arcParquet, smallArcRows } from "../../../../data/src/rows/arc-parquet.test-data.ts";
import { hostDataset, startHub, type HubServer } from "../../../../data/src/hub/hub-server.test-data.ts";
import { microWorld } from "../../demo/micro-world.ts";
import { runCommand } from "../../run-command.test-data.ts";

let hub: HubServer;
let [folder, results] = ["", ""];
beforeEach(async () => {
  hub = await startHub();
  folder = await mkdtemp(join(tmpdir(), "suite-options-"));
  results = join(folder, "results");
  vi.stubEnv("HF_ENDPOINT", hub.url);
  vi.stubEnv("HF_HUB_CACHE", join(folder, "cache"));
  for (const name of ["HF_TOKEN", "HF_HUB_OFFLINE"]) vi.stubEnv(name, "");
  hostDataset(hub, "allenai/ai2_arc", {
    "ARC-Challenge/test/0000.parquet": arcParquet(smallArcRows),
    "ARC-Easy/test/0000.parquet": arcParquet(smallArcRows.slice(0, 1)),
  });
  hostDataset(hub, "cais/mmlu", {
    "anatomy/test/0000.parquet": parquet([{ question: "Why?", choices: ["a", "b", "c", "d"], answer: 2 }]),
  });
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await hub.close();
  await rm(folder, { recursive: true });
});

const parquet = (rows: readonly Readonly<Record<string, unknown>>[]) => {
  const columnData = Object.keys(rows[0]!).map((name) => ({ name, data: rows.map((row) => row[name]) }));
  return new Uint8Array(parquetWriteBuffer({ columnData }));
};
const evaluate = (...args: string[]) =>
  runCommand(["eval", "--model", microWorld(), "--backend", "wasm", ...args]);
const suiteFile = async (tasks: string) => {
  const path = join(folder, "suite.yaml");
  await writeFile(path, `schema_version: 1\nname: s\ntasks:\n${tasks}`);
  return path;
};
const twoTasks = "  arc_challenge: {}\n  mmlu_anatomy: { shots: 0 }\n";
const onlyRun = async (): Promise<MetricsRun> => {
  const { runs } = await readMetrics(join(results, "metrics.json"));
  expect(runs).toHaveLength(1);
  return runs[0]!;
};

describe("without --data", () => {
  it("downloads what the tasks need once, before the model loads, and then makes no request", async () => {
    const asked = ["--tasks", "arc_challenge,mmlu_anatomy", "--shots", "0", "--json"];
    const first = await evaluate(...asked);
    expect(first).toMatchObject({ code: 0 });
    expect(first.err).toContain("downloading 1 split of arc_challenge\ndownloading 1 split of mmlu\n");
    expect(JSON.parse(first.out).n).toMatchObject({
      "arc_challenge/acc,none": 2,
      "mmlu_anatomy/acc,none": 1,
    });
    hub.requests.length = 0;
    vi.stubEnv("HF_HUB_OFFLINE", "1");
    const again = await evaluate(...asked);
    expect([again.code, hub.requests]).toEqual([0, []]);
    expect(again.err).not.toContain("downloading");
  });

  it("reads a suite's tasks from the hub, and folders beside the suite first", async () => {
    const suite = await suiteFile(twoTasks);
    await mkdir(join(folder, "arc_challenge"));
    const rows = Array.from({ length: 3 }, (_, at) => JSON.stringify({ ...smallArcRows[0], id: `own${at}` }));
    await writeFile(join(folder, "arc_challenge", "test.jsonl"), rows.join("\n"));
    expect(await evaluate("--suite", suite, "--results", results)).toMatchObject({ code: 0 });
    expect((await onlyRun()).n).toMatchObject({ "arc_challenge/acc,none": 3, "mmlu_anatomy/acc,none": 1 });
    expect(hub.requests.some((request) => request.includes("ai2_arc"))).toBe(false);
  });

  it.each(["HF_HUB_OFFLINE", "a hub that does not answer"])(
    "reports all datasets that the cache lacks in one error: %s",
    async (reason) => {
      if (reason === "HF_HUB_OFFLINE") vi.stubEnv(reason, "1");
      else vi.stubEnv("HF_ENDPOINT", "http://127.0.0.1:9");
      for (const args of [
        ["--tasks", "arc_challenge,mmlu_anatomy"],
        ["--suite", await suiteFile(twoTasks), "--results", results],
      ]) {
        const { code, out, err } = await evaluate(...args);
        expect([
          code,
          out,
          err.split("\n").filter((line) => line.includes("[periodic-eval]")).length,
        ]).toEqual([1, "", 1]);
        for (const part of [
          "data of arc_challenge, mmlu_anatomy",
          `arc_challenge (${join(folder, "cache", "datasets--allenai--ai2_arc")})`,
          "`npx periodic-eval data get arc_challenge --out data`, `npx periodic-eval data get mmlu --out data`",
          `\`data: "data"\` (--data data)`,
        ])
          expect(err).toContain(part);
      }
      expect(existsSync(results)).toBe(false);
    },
  );
});

describe("--suite", () => {
  it("takes --method, --tokenizer and --data hf:…", async () => {
    // Several suites of one package share a dataset: it needs the splits of all of them.
    hostDataset(hub, "owner/mirror", {
      "ARC-Challenge/test/0000.parquet": arcParquet(smallArcRows),
      "anatomy/test/0000.parquet": parquet([{ question: "How?", choices: ["a", "b", "c", "d"], answer: 1 }]),
    });
    const tokenizer = join(folder, "tokenizer");
    await mkdir(tokenizer);
    for (const name of ["tokenizer.json", "tokenizer_config.json", "chat_template.jinja"])
      await cp(microWorld(name), join(tokenizer, name));
    const suite = await suiteFile(twoTasks);
    const args = ["--suite", suite, "--results", results, "--data", "hf:owner/mirror"];
    const { code, err } = await evaluate(...args, "--method", "sft", "--tokenizer", tokenizer);
    expect([code, err]).toEqual([0, expect.stringContaining("arc_challenge  2 of 2")]);
    expect(await onlyRun()).toMatchObject({
      method: "sft",
      model_args: `pretrained=${microWorld()},tokenizer=${tokenizer}`,
      n: { "arc_challenge/acc,none": 2, "mmlu_anatomy/acc,none": 1 },
    });
    expect(hub.requests.some((request) => request.includes("mirror"))).toBe(true);
    expect(hub.requests.some((request) => request.includes("ai2_arc"))).toBe(false);
  });

  it("uses the tokenizer that is named, which changes the numbers", async () => {
    const other = join(folder, "other");
    await mkdir(other);
    for (const name of ["tokenizer_config.json", "chat_template.jinja"])
      await cp(microWorld(name), join(other, name));
    const file = JSON.parse(await readFile(microWorld("tokenizer.json"), "utf8"));
    // Swaps the ids of two tokens.
    const { vocab } = file.model;
    [vocab["a"], vocab["e"]] = [vocab["e"], vocab["a"]];
    await writeFile(join(other, "tokenizer.json"), JSON.stringify(file));
    const suite = await suiteFile("  arc_challenge: {}\n");
    const larger = join(folder, "larger");
    await cp(other, larger, { recursive: true });
    await writeFile(
      join(larger, "tokenizer.json"),
      JSON.stringify({ ...file, model: { ...file.model, vocab: { ...vocab, "<new>": 999_999 } } }),
    );
    const refused = await evaluate("--suite", suite, "--results", results, "--tokenizer", larger);
    expect([refused.code, refused.err]).toEqual([
      1,
      expect.stringMatching(/larger: got \d+ tokens, expected at most/),
    ]);
    const runs = [];
    for (const [name, args] of [
      ["own", []],
      ["other", ["--tokenizer", other]],
    ] as const) {
      const { code, err } = await evaluate("--suite", suite, "--results", results, "--name", name, ...args);
      expect([code, err]).toEqual([0, expect.anything()]);
      runs.push(JSON.parse(await readFile(join(results, "jobs", name, "results.json"), "utf8")).identity);
    }
    expect(runs[0].tokenizer).not.toBe(runs[1].tokenizer);
    expect({ ...runs[0], tokenizer: null }).toEqual({ ...runs[1], tokenizer: null });
  });

  it("reads a folder that is named, with the layout of `data get`", async () => {
    const data = join(folder, "data");
    expect((await runCommand(["data", "get", "hf:allenai/ai2_arc/ARC-Easy/test", "--out", data])).code).toBe(
      0,
    );
    await mkdir(join(data, "arc_easy"));
    await cp(join(data, "ai2_arc", "test.jsonl"), join(data, "arc_easy", "test.jsonl"));
    const suite = await suiteFile("  arc_easy: {}\n");
    const { code, err } = await evaluate("--suite", suite, "--results", results, "--data", data);
    expect([code, err]).toEqual([0, expect.anything()]);
    expect((await onlyRun()).n).toMatchObject({ "arc_easy/acc,none": 1 });
  });

  it.each([
    [
      ["--data", "DIR/none"],
      'data (--data): got "DIR/none/arc_challenge", which does not exist',
      "`npx periodic-eval data get arc_challenge --out DIR/none` writes DIR/none/arc_challenge",
    ],
    [
      ["--data", "DIR"],
      "DIR/arc_challenge",
      "`npx periodic-eval data get arc_challenge --out DIR` writes DIR/arc_challenge",
    ],
    [
      ["--data", "hf:cais/mmlu"],
      "arc_challenge options.data",
      "arc_challenge is in hf:allenai/ai2_arc, which is read if no other data is named",
    ],
    [
      ["--data", "hf:cais/mmlu/anatomy/test"],
      "data (--data): got the split hf:cais/mmlu/anatomy/test for 2 tasks (arc_challenge, mmlu_anatomy)",
      "Set `data` per task in the suite",
    ],
    [
      ["--data", "hf:owner/other"],
      "hf:owner/other/ARC-Challenge/test/0000.parquet row 0: got no question",
      "arc_challenge is in hf:allenai/ai2_arc, which is read if no other data is named; a suite may set `data` per task",
    ],
    [["--data", "hf:cais"], 'arc_challenge options.data: got "hf:cais', "hf:owner/dataset"],
    [["--tokenizer", "DIR/none"], "DIR/none", "the path"],
  ])("rejects %j before the model loads", async (args, place, remedy) => {
    hostDataset(hub, "owner/other", {
      "ARC-Challenge/test/0000.parquet": parquet([{ title: "Not a question" }]),
      "anatomy/test/0000.parquet": parquet([{ question: "How?", choices: ["a", "b", "c", "d"], answer: 1 }]),
    });
    const at = (text: string) => text.replaceAll("DIR", folder);
    const suite = await suiteFile(twoTasks);
    const noWeights = args[0] === "--data" ? ["--model", join(folder, "no-weights")] : [];
    const all = ["--suite", suite, "--results", results, ...noWeights, ...args.map(at)];
    const { code, out, err } = await evaluate(...all);
    expect([code, out]).toEqual([1, ""]);
    expect(err).toContain(at(place));
    expect(err).toContain(at(remedy));
    expect(err.split("\n").filter((line) => line.includes("[periodic-eval]"))).toHaveLength(1);
  });

  it("refuses a dataset that no task reads, because each names its own data", async () => {
    const suite = await suiteFile("  arc_challenge: { data: questions.jsonl }\n");
    const args = ["--model", join(folder, "no-weights"), "--data", "hf:owner/other"];
    const { code, err } = await evaluate("--suite", suite, "--results", results, ...args);
    expect([code, err]).toEqual([1, expect.stringContaining("(arc_challenge: questions.jsonl)")]);
    expect(err).toContain("data (--data): got hf:owner/other, which no task reads");
  });

  it("takes one split as --data of a single task, and refuses it for two tasks", async () => {
    const data = ["--shots", "0", "--data", "hf:cais/mmlu/anatomy/test", "--json"];
    const single = await evaluate("--tasks", "mmlu_anatomy", ...data);
    expect([single.code, JSON.parse(single.out).n["mmlu_anatomy/acc,none"]]).toEqual([0, 1]);
    const two = await evaluate("--tasks", "arc_challenge,mmlu_anatomy", ...data);
    expect([two.code, two.err]).toEqual([1, expect.stringContaining("for 2 tasks")]);
  });

  it("names all tasks that do not fit into the model's context, before the weights load", async () => {
    const [data, model] = [join(folder, "data"), join(folder, "model")];
    await mkdir(model);
    for (const name of ["config.json", "tokenizer.json", "tokenizer_config.json"])
      await cp(microWorld(name), join(model, name));
    const row = JSON.stringify({ question: "1 and 1?", answer: "It is 2.\n#### 2" });
    const prompt = {
      key: 1,
      prompt: "Say hello.",
      instruction_id_list: ["punctuation:no_comma"],
      kwargs: [{}],
    };
    for (const [path, text] of [
      ["gsm8k/test.jsonl", row],
      ["ifeval/input_data.jsonl", JSON.stringify(prompt)],
      ["arc_challenge/test.jsonl", await readFile(microWorld("questions.jsonl"), "utf8")],
    ] as const) {
      await mkdir(join(data, path, ".."), { recursive: true });
      await writeFile(join(data, path), text);
    }
    const tasks = "arc_challenge,gsm8k,ifeval";
    const { code, err } = await evaluate("--model", model, "--tasks", tasks, "--shots", "0", "--data", data);
    expect(code).toBe(1);
    expect(err).toMatch(/gsm8k: 256 beside prompts of up to \d+ tokens, for a context of 256 tokens/);
    expect(err).toMatch(/ifeval: 1280 beside prompts of up to \d+ tokens/);
    expect(err).toContain("leave these tasks out (--tasks arc_challenge)");
  });

  it("rejects an empty label, and letters or cloze that are misspelt", async () => {
    const empty = await evaluate("--suite", "--method", " ");
    expect([empty.code, empty.err]).toEqual([2, expect.stringContaining("got an empty label")]);
    const wrong = await evaluate("--questions", "q.jsonl", "--method", "letter");
    expect([wrong.code, wrong.err]).toEqual([
      2,
      expect.stringContaining('Got "letter", expected one or more of letters, cloze.'),
    ]);
  });
});

describe("names the option as it was written", () => {
  const at = (line: string) => `suite.yaml:4 tasks.${line}`;
  it.each([
    ["a missing folder", "gsm8k: { data: none, shots: 0 }", [], `${at("gsm8k.data")}: got `],
    ["a missing pool", "gsm8k: { data: gsm8k, fewshot_pool: none }", [], `${at("gsm8k.fewshot_pool")}: got `],
    [
      "no pool",
      "gsm8k: { data: gsm8k/test.jsonl, shots: 2 }",
      [],
      `${at("gsm8k.shots")}: got 2 without a pool`,
    ],
    [
      "the spelling of another option",
      "gsm8k: { data: gsm8k/test.jsonl, shots: 2 }",
      [],
      "Set `fewshot_pool` to",
    ],
    ["a folder of the caller", "gsm8k: { shots: 0 }", ["--data", "ROOT/gsm8k"], "data (--data): got "],
  ])("in a suite's file: %s", async (_, task, args, message) => {
    await writeRows([{ question: "1 + 1?", answer: "#### 2" }]);
    const suite = await suiteFile(`  ${task}\n`);
    const result = await evaluate("--suite", suite, ...args.map((arg) => arg.replace("ROOT", folder)));
    expect(result).toMatchObject({ code: 1 });
    expect(result.err).toContain(message);
  });

  it.each([
    ["a split that is missing", [], "[periodic-eval] data (--data): got the folder "],
    ["a wrong row", ["--shots", "0"], "[periodic-eval] --tasks, DATA/test.jsonl:1: got no answer"],
  ])("on the command line: %s", async (_, args, message) => {
    await writeRows([{ question: "1 + 1?" }]);
    const { err } = await evaluate("--tasks", "gsm8k", "--data", folder, ...args);
    expect(err).toContain(message.replace("DATA", join(folder, "gsm8k")));
  });
});

/** Writes rows of gsm8k into the folder. */
async function writeRows(rows: readonly object[]): Promise<void> {
  await mkdir(join(folder, "gsm8k"));
  await writeFile(join(folder, "gsm8k", "test.jsonl"), rows.map((row) => JSON.stringify(row)).join("\n"));
}
