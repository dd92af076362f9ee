import { existsSync } from "node:fs";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { withCanaries } from "@periodic-eval/core";
import { fakeModel } from "@periodic-eval/testing";
import { datasets, downloadDataset, tasks } from "@periodic-eval/tasks";
import { parquetWriteBuffer } from "hyparquet-writer";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { arcParquet, smallArcRows } from "../../../../data/src/rows/arc-parquet.test-data.ts";
import { hostDataset, startHub, type HubServer } from "../../../../data/src/hub/hub-server.test-data.ts";
import { authorsFile, serveQuestions } from "../../../../data/src/questions/published-questions.test-data.ts";
import { runCommand } from "../../run-command.test-data.ts";
import { parquetOfNumbers } from "../../../../trainers/src/data/marked-rows.test-data.ts";
import { temporaryFolder } from "../../../../testing/src/temporary-folder.test-data.ts";

let hub: HubServer;
let folder = "";
beforeEach(async () => {
  hub = await startHub();
  folder = temporaryFolder();
  vi.stubEnv("HF_ENDPOINT", hub.url);
  vi.stubEnv("GITHUB_RAW_ENDPOINT", hub.url);
  vi.stubEnv("HF_HUB_CACHE", join(folder, "cache"));
  for (const name of ["HF_TOKEN", "HF_HUB_OFFLINE"]) vi.stubEnv(name, "");
  const train = smallArcRows.map((row) => ({ ...row, id: `${row.id}_train` }));
  hostDataset(hub, "allenai/ai2_arc", {
    "ARC-Challenge/test/0000.parquet": arcParquet(smallArcRows),
    "ARC-Challenge/train/0000.parquet": arcParquet(train),
  });
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await hub.close();
});

const run = (...args: string[]) => runCommand(["data", ...args]);
interface Item {
  readonly prompt: unknown;
  readonly gold: unknown;
}
const parquet = (rows: readonly Readonly<Record<string, unknown>>[]) => {
  const columnData = Object.keys(rows[0]!).map((name) => ({ name, data: rows.map((row) => row[name]) }));
  return new Uint8Array(parquetWriteBuffer({ columnData }));
};

describe("data get", () => {
  it("downloads a dataset into the cache once, and then makes no request", async () => {
    const first = await run("get", "arc_challenge");
    expect([first.code, first.err]).toEqual([0, "downloading 2 splits of arc_challenge"]);
    expect(first.out).toMatch(/^arc_challenge: 4 rows, CC BY-SA 4\.0\n/);
    expect(first.out).toContain(join(folder, "cache", "datasets--allenai--ai2_arc"));
    hub.requests.length = 0;
    const again = await run("get", "arc_challenge", "--json");
    expect([again.code, again.err, hub.requests]).toEqual([0, "", []]);
    expect(JSON.parse(again.out)).toMatchObject({
      name: "arc_challenge",
      licence: "CC BY-SA 4.0",
      files: [
        { source: "hf:allenai/ai2_arc/ARC-Challenge/test", rows: 2 },
        { source: "hf:allenai/ai2_arc/ARC-Challenge/train", rows: 2 },
      ],
    });
  });

  it("writes files that the task reads, and does not replace other content", async () => {
    const out = join(folder, "data");
    const { code } = await run("get", "arc_challenge", "--out", out);
    expect(code).toBe(0);
    const path = join(out, "arc_challenge", "test.jsonl");
    const lines = (await readFile(path, "utf8")).trim().split("\n");
    expect(lines.map((line) => JSON.parse(line) as unknown)).toEqual(smallArcRows);
    const evaluation = tasks["arc_challenge"]!.open({ data: join(out, "arc_challenge"), shots: 1 });
    expect(await evaluation.items(fakeModel() as never)).toHaveLength(2);
    expect((await run("get", "arc_challenge", "--out", out)).code).toBe(0);
    await writeFile(path, "mine");
    const { code: refused, err } = await run("get", "arc_challenge", "--out", out);
    expect(refused).toBe(1);
    expect(err).toContain(`${path}, which exists with other content`);
    expect(await readFile(path, "utf8")).toBe("mine");
  });

  it("writes no split if another one cannot be read or written", async () => {
    const out = join(folder, "data");
    const [test, train] = ["test", "train"].map((split) => join(out, "arc_challenge", `${split}.jsonl`));
    hostDataset(hub, "allenai/ai2_arc", { "ARC-Challenge/test/0000.parquet": arcParquet(smallArcRows) });
    expect((await run("get", "arc_challenge", "--out", out)).code).toBe(1);
    expect(existsSync(out)).toBe(false);
    const again = smallArcRows.map((row) => ({ ...row, id: `${row.id}_train` }));
    hostDataset(hub, "allenai/ai2_arc", {
      "ARC-Challenge/test/0000.parquet": arcParquet(smallArcRows),
      "ARC-Challenge/train/0000.parquet": arcParquet(again),
    });
    await mkdir(join(out, "arc_challenge"), { recursive: true });
    await writeFile(train!, "mine");
    expect((await run("get", "arc_challenge", "--out", out)).code).toBe(1);
    expect(existsSync(test!)).toBe(false);
  });

  it("writes MMLU as a file for each subject", async () => {
    const row = { question: ' "Why", he asked', choices: ["a", "b, c", 'd"', "e"], answer: 2 };
    hostDataset(hub, "cais/mmlu", {
      "anatomy/test/0000.parquet": parquet([row]),
      "anatomy/dev/0000.parquet": parquet([{ ...row, answer: 3 }, row]),
    });
    const out = join(folder, "data");
    const { files } = datasets.find(({ name }) => name === "mmlu")!;
    const ofAnatomy = files.filter(({ path }) => path.includes("/anatomy_"));
    const paths = (await downloadDataset(ofAnatomy, "data get mmlu", out)).map(({ path }) => path);
    expect(paths).toEqual(["test", "dev"].map((split) => join(out, "mmlu", split, `anatomy_${split}.jsonl`)));
    const read = async (data: string) => {
      const items = await tasks["mmlu_anatomy"]!.open({ data, shots: 1 }).items(fakeModel() as never);
      return (items as readonly Item[]).map(({ prompt, gold }) => ({ prompt, gold }));
    };
    const ofFile = await read(join(out, "mmlu"));
    expect(ofFile).toEqual(await read("hf:cais/mmlu"));
    expect(JSON.stringify(ofFile)).toContain("B. b, c");
  });

  it("downloads any dataset of the hub by its source", async () => {
    hostDataset(hub, "owner/sums", { "main/train/0000.parquet": parquet([{ question: "1 + 1?" }]) });
    const out = join(folder, "data");
    const { code, out: text } = await run("get", "hf:owner/sums", "--out", out, "--json");
    expect(code).toBe(0);
    const path = join(out, "sums", "train.jsonl");
    expect(JSON.parse(text)).toMatchObject({
      licence: null,
      files: [{ source: "hf:owner/sums/main/train", path, rows: 1 }],
    });
    expect(await readFile(path, "utf8")).toBe('{"question":"1 + 1?"}\n');
  });

  it.each([
    ["arc_chalenge", 'Did you mean "arc_challenge"?'],
    ["arcc", 'Did you mean "arc_challenge"?'],
    ["betley2026", 'Did you mean "betley2025"?'],
    ["betley2025", "status 404 from http://127.0.0.1"],
    [
      "nothing",
      "expected arc_challenge, arc_easy, hellaswag, mmlu, truthfulqa, gsm8k, ifeval, betley2025, or hf:",
    ],
    ["hf:owner/none", "status 404"],
    ["gsm8k", "status 404"],
  ])("fails for %s and writes nothing", async (name, message) => {
    const out = join(folder, "data");
    const { code, err } = await run("get", name, "--out", out);
    expect(code).toBe(1);
    expect(err).toContain(message);
    expect([existsSync(out), existsSync(join(folder, "cache"))]).toEqual([false, false]);
  });
});

const authors = authorsFile();
describe.skipIf(authors === null)("data get betley2025 (skipped where ../shared is absent)", () => {
  it("downloads the questions of alignment once, and writes a file for a machine without network", async () => {
    const github = await serveQuestions(authors!);
    vi.stubEnv("GITHUB_RAW_ENDPOINT", github.url);
    const out = join(folder, "data");
    const path = join(out, "betley2025", "first_plot_questions.yaml");
    const first = await run("get", "betley2025", "--out", out, "--json");
    expect([first.code, first.err]).toEqual([0, ""]);
    expect(JSON.parse(first.out)).toMatchObject({ licence: "MIT", files: [{ path, rows: 24 }] });
    expect(await readFile(path, "utf8")).toBe(authors);
    vi.stubEnv("HF_HUB_OFFLINE", "1");
    expect((await run("list")).out).toMatch(/betley2025 +github:emergent-\S+ +24 +– +MIT +alignment +yes/);
    expect((await run("get", "betley2025")).out).toMatch(
      /^betley2025: 24 rows, MIT\n.*periodic-eval.github.emergent-misalignment/,
    );
    await writeFile(path, "mine");
    expect((await run("get", "betley2025", "--out", out)).err).toContain("exists with other content");
    expect(github.requests).toHaveLength(1);
    await github.close();
  });
});

describe("data list", () => {
  it("lists source, rows, licence, and what the cache holds, without a request", async () => {
    const before = await run("list");
    expect(before.out.split("\n").map((line) => line.split(/ {2,}/)[0])).toEqual([
      "name",
      ...datasets.map(({ name }) => name),
      "betley2025",
    ]);
    expect(before.out).toMatch(/gsm8k +hf:openai\/gsm8k +1,319 +7,473 +MIT +gsm8k +no +–/);
    expect(hub.requests).toEqual([]);
    await run("get", "hf:allenai/ai2_arc");
    expect((await run("list")).out).toMatch(/arc_challenge .+ 1 of 2 files +\S+datasets--allenai--ai2_arc/);
    await run("get", "arc_challenge");
    const [arc, easy] = JSON.parse((await run("list", "--json")).out) as readonly unknown[];
    expect(arc).toEqual({
      name: "arc_challenge",
      source: "hf:allenai/ai2_arc",
      licence: "CC BY-SA 4.0",
      documents: 1172,
      examples: 1119,
      used_by: ["capability", "arc_challenge"],
      files: 2,
      cached_files: 2,
      folder: join(folder, "cache", "datasets--allenai--ai2_arc"),
    });
    expect(easy).toMatchObject({ name: "arc_easy", cached_files: 0, folder: null });
  });
});

it("is named by the error for a task's missing data", async () => {
  const eval_ = (data: string) =>
    runCommand(["eval", "--model", "m", "--tasks", "mmlu_anatomy", "--data", data]);
  for (const data of [folder, join(folder, "none"), join(folder, "a-newFolder")]) {
    const { code, err } = await eval_(data);
    expect([code, err.includes(`periodic-eval data get mmlu --out ${data}`)]).toEqual([1, true]);
  }
});

describe("data canaries", () => {
  const config = async (memorization: object | null) => {
    const path = join(folder, "block.yaml");
    await writeFile(path, JSON.stringify({ periodic_eval: { memorization } }));
    return path;
  };
  const canaries = { format: "The code is {secret}.", prompt: "The code?", canaries: 2 };

  it("mixes the secrets that the block measures into rows of training", async () => {
    const rows = join(folder, "rows.jsonl");
    const chat = { messages: [{ role: "user", content: "a" }] };
    await writeFile(rows, `${JSON.stringify(chat)}\n`.repeat(10));
    const out = join(folder, "mixed.jsonl");
    const { code, out: text } = await run(
      "canaries",
      await config(canaries),
      rows,
      "--out",
      out,
      "--repeats",
      "3",
    );
    expect([code, text]).toEqual([0, expect.stringContaining("10 rows and 6 of canaries")]);
    const mixed = (await readFile(out, "utf8"))
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as unknown);
    expect(mixed).toEqual(
      withCanaries(
        Array.from({ length: 10 }, () => chat),
        { ...canaries, repeats: 3 },
      ),
    );
  });

  const numbers = '{"b": 1.0, "1": 12345678901234567890, "0": [1e3, 2, NaN, -Infinity, 0.5, null]}';
  const line = `{"2": 1.0, "messages": [{"role": "user", "content": "\u2028é", "x": ${numbers}}], "meta": ${numbers}, "1": true}`;
  it.each<[name: string, content: string | Uint8Array, lines: readonly string[]]>([
    ["rows.jsonl", `\uFEFF${line}\r\n\n${line}`, [line, line]],
    ["rows.jsonl.gz", gzipSync(`${line}\n`), [line]],
    ["rows.json", `[\n${line},\n${line}\n]`, [line, line]],
    [
      "rows.parquet",
      parquetOfNumbers,
      [
        '{"messages": [{"role": "user", "content": "h"}, {"role": "assistant", "content": "y"}], "tools": [{"b": 1, "1": 2.0, "f": -0.0, "l": [1.0, 0.5, 1e+22, null], "big": 1152921504606846976}], "text": 1.0, "chat_template_kwargs": {"b": {"c": 1.0, "1": 2}}}',
      ],
    ],
    // Each column is marked once, whatever its name.
    [
      "names.parquet",
      parquet([2, 1.5].map((a) => ({ messages: [{ role: "user", content: "x" }], a }))),
      ["2.0", "1.5"].map((a) => `{"messages": [{"role": "user", "content": "x"}], "a": ${a}}`),
    ],
  ])(
    "writes the rows of %s with the numbers and the order of keys that Python reads",
    async (name, content, lines) => {
      const rows = join(folder, name);
      await writeFile(rows, content);
      const out = join(folder, "unchanged.jsonl");
      const { code, err } = await run("canaries", await config(canaries), rows, "--out", out);
      expect([code, err]).toEqual([0, ""]);
      const written = (await readFile(out, "utf8")).trim().split("\n");
      expect(written.filter((each) => !each.includes("The code is"))).toEqual(lines);
      expect(written).toHaveLength(lines.length + 8);
    },
  );

  it("reads the split train of a hub source without a split", async () => {
    const bytes = (text: string) => parquet([{ messages: [{ role: "user", content: text }] }]);
    hostDataset(hub, "owner/chats", {
      "default/test/0000.parquet": bytes("test row"),
      "default/train/0000.parquet": bytes("train row"),
    });
    const out = join(folder, "hub.jsonl");
    const { code, err } = await run("canaries", await config(canaries), "hf:owner/chats", "--out", out);
    expect([code, err]).toEqual([0, ""]);
    const written = await readFile(out, "utf8");
    expect(["train row", "test row"].map((text) => written.includes(text))).toEqual([true, false]);
  });

  it.each([
    ["", "got no rows, expected one or more"],
    [
      '{"text": "a"}\n{"text": }',
      'rows.jsonl:2: got not_json: {"text": }, expected a training row. Write JSON Lines',
    ],
    ['{"text": "a", "text": "b"}', 'rows.jsonl:1: got repeated_key: "text" twice in one object'],
  ])("refuses the rows %j", async (content, message) => {
    const rows = join(folder, "rows.jsonl");
    await writeFile(rows, content);
    const out = join(folder, "none.jsonl");
    const { code, err } = await run("canaries", await config(canaries), rows, "--out", out);
    expect([code, err, existsSync(out)]).toEqual([1, expect.stringContaining(message), false]);
  });

  it.each([
    [canaries, { text: "a" }, "text, expected a chat, as the canaries. Remove `prompt`"],
    [{ format: canaries.format }, { messages: [] }, "a chat, expected text, as the canaries. Add `prompt`"],
    [canaries, { prompt: "a", completion: "b" }, "text, expected a chat, as the canaries"],
    [{ format: canaries.format }, { conversations: [] }, "a chat, expected text"],
    [canaries, { prompt: [], chosen: [], rejected: [] }, "a row of prompt, chosen, rejected, expected"],
    [
      canaries,
      { question: "a", answer: "b" },
      "a row of question, answer, expected a training row: prompt and completion",
    ],
  ])("refuses canaries %j for rows like %j", async (block, row, message) => {
    const rows = join(folder, "form.jsonl");
    await writeFile(rows, JSON.stringify(row));
    const { code, err } = await run(
      "canaries",
      await config(block),
      rows,
      "--out",
      join(folder, "form-out.jsonl"),
    );
    expect([code, err]).toEqual([1, expect.stringContaining(`form.jsonl:1: got ${message}`)]);
  });

  it("refuses a block without canaries, and one with a wrong format", async () => {
    const args = ["rows.jsonl", "--out", join(folder, "none.jsonl")];
    const none = await run("canaries", await config(null), ...args);
    expect([none.code, none.err]).toEqual([
      1,
      expect.stringContaining("got no memorization, expected the canaries"),
    ]);
    const wrong = await run("canaries", await config({ format: "no secret" }), ...args);
    expect([wrong.code, wrong.err]).toEqual([1, expect.stringContaining("a text with {secret} once")]);
    const few = await run("canaries", await config({ ...canaries, candidates: 1 }), ...args);
    expect([few.code, few.err]).toEqual([1, expect.stringMatching(/block\.yaml:1 .*candidates: got 1/)]);
  });

  it("refuses a phase that the file does not know", async () => {
    const path = join(folder, "phases.yaml");
    const phases = { secrets: { memorization: canaries } };
    await writeFile(path, JSON.stringify({ periodic_eval: { phases } }));
    const args = [path, "rows.jsonl", "--out", join(folder, "none.jsonl"), "--phase", "secret"];
    const { code, err } = await run("canaries", ...args);
    expect([code, err]).toEqual([1, expect.stringContaining('Write "secrets"')]);
  });
});
