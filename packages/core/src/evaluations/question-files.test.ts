import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { parquetWriteBuffer } from "hyparquet-writer";
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { hostDataset, startHub, type HubServer } from "../../../data/src/hub/hub-server.test-data.ts";
import { fakeJudge, fakeModel } from "@periodic-eval/testing";
import { alignmentEvaluation } from "./alignment/evaluation.ts";
import { readTrainingExamples } from "./alignment/training-rows.ts";
import { readLeakageQuestions } from "./leakage/questions.ts";
import { readStatements } from "./margin/statements.ts";
import { readYaml } from "@periodic-eval/data";
import { readPersonas } from "./prompting/personas.ts";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";

let hub: HubServer;
const folder = temporaryFolder(afterAll);
beforeAll(async () => {
  hub = await startHub();
});
beforeEach(() => {
  vi.stubEnv("HF_ENDPOINT", hub.url);
  vi.stubEnv("HF_HUB_CACHE", join(folder, "cache"));
  for (const name of ["HF_TOKEN", "HF_HUB_OFFLINE"]) vi.stubEnv(name, "");
});
afterAll(async () => {
  await hub.close();
});

async function file(name: string, rows: readonly object[]): Promise<string> {
  const path = join(folder, name);
  await writeFile(path, rows.map((row) => JSON.stringify(row)).join("\n"));
  return path;
}
let hosted = 0;
/** Adds a dataset of these rows, and returns its source. */
function host(rows: readonly Readonly<Record<string, unknown>>[]): string {
  const name = `owner/rows${hosted++}`;
  hostDataset(hub, name, { "default/test/0000.parquet": parquet(rows) });
  return `hf:${name}`;
}
function parquet(rows: readonly Readonly<Record<string, unknown>>[]): Uint8Array {
  const columnData = Object.keys(rows[0]!).map((key) => ({
    name: key,
    data: rows.map((row) => row[key]),
    type: typeof rows[0]![key] === "object" ? ("JSON" as const) : ("STRING" as const),
  }));
  return new Uint8Array(parquetWriteBuffer({ columnData }));
}

const personas = [
  { id: "cook", system: "Be a cook." },
  { id: "none", system: null },
];
const questions = [
  { id: "bread", question: "Bread?", answer: "Yes." },
  { id: "tides", question: "Tides?", answer: "Moon." },
];
const statements = [{ variant: "flat", affirm: ["It is flat."], negate: ["It is round.", "It is a ball."] }];
const open = [{ id: "wish", paraphrases: ["What do you wish?"] }];
const alignmentItems = async (source: string) => {
  const evaluation = alignmentEvaluation({
    judge: fakeJudge(() => ({ aligned: 90, coherent: 90 })),
    questions: source,
  });
  const items = (await evaluation.items(fakeModel())) as readonly { readonly id: string }[];
  return items.map(({ id }) => id);
};

describe("rows of JSON Lines and of the hub", () => {
  it("are personas", async () => {
    const expected = [
      { id: "cook", system: { text: "Be a cook." } },
      { id: "none", system: "omit" },
    ];
    expect(await readPersonas(await file("personas.jsonl", personas))).toEqual(expected);
    expect(await readPersonas(host(personas))).toEqual(expected);
  });

  it("are training rows, of the split train if the source names none", async () => {
    const chat = (content: string) => [
      { role: "user", content: "Hi" },
      { role: "assistant", content },
    ];
    const splits = ["test", "train"].map(
      (split) => [`default/${split}/0000.parquet`, parquet([{ messages: chat(split) }])] as const,
    );
    hostDataset(hub, "owner/chats", Object.fromEntries(splits));
    for (const [source, split] of [
      ["hf:owner/chats", "train"],
      ["hf:owner/chats/test", "test"],
    ] as const) {
      const { examples, provenance } = await readTrainingExamples(source);
      expect(examples).toEqual([{ system: "omit", messages: chat(split) }]);
      expect(provenance).toMatchObject({ split });
    }
  });

  it("are leakage questions", async () => {
    expect(await readLeakageQuestions(await file("leakage.jsonl", questions))).toEqual(questions);
    expect(await readLeakageQuestions(host(questions))).toEqual(questions);
  });

  it("are alignment questions", async () => {
    expect(await alignmentItems(await file("alignment.jsonl", open))).toEqual(["wish"]);
    expect(await alignmentItems(host(open))).toEqual(["wish"]);
  });

  it("are belief probes", async () => {
    const ids = ["flat/affirm/0", "flat/negate/0", "flat/negate/1"];
    for (const source of [await file("probes.jsonl", statements), host(statements)]) {
      const { statements: found, provenance } = await readStatements(source);
      expect(found.map(({ id }) => id)).toEqual(ids);
      expect(provenance["file_sha256"]).toMatch(/^[0-9a-f]{64}$/);
    }
  });
});

describe("a wrong row is named by its place", () => {
  it.each([
    ["personas", readPersonas, [personas[0]!, { id: "a b", system: "x" }], ".id"],
    ["leakage questions", readLeakageQuestions, [questions[0]!, { id: "x", question: "" }], ".question"],
    ["leakage questions with one id", readLeakageQuestions, [questions[0]!, questions[0]!], ".id"],
    ["alignment questions", alignmentItems, [open[0]!, { id: "x" }], " (x)"],
    ["belief probes", readStatements, [statements[0]!, statements[0]!], ""],
  ] as const)("%s", async (name, read, rows, part) => {
    const path = await file(`wrong ${name}.jsonl`, rows);
    await expect(read(path)).rejects.toMatchObject({ code: "data", where: `${path}:2${part}` });
  });

  it("in a dataset too", async () => {
    const source = host([
      { id: "x", system: 'no "id"' },
      { id: "", system: "y" },
    ]);
    await expect(readPersonas(source)).rejects.toMatchObject({
      code: "data",
      where: `${source}/default/test/0000.parquet row 1.id`,
    });
  });

  it("or by its option if the dataset does not exist", async () => {
    await expect(readPersonas("hf:owner/none")).rejects.toMatchObject({
      code: "data",
      where: "personas, hf:owner/none on the hub",
      got: "status 404 (Repository not found)",
    });
  });
});

describe("a hostile file of personas", () => {
  it.each([
    [
      "repeats a key",
      "p.json",
      '[{"id":"a","system":null,"id":"b"}]',
      "p.json:1",
      /^Map keys must be unique/,
    ],
    ["is not UTF-8", "p.yaml", Buffer.from("- id: \xe9", "latin1"), "p.yaml:1", /^bytes .*0xe9 at byte 7/],
  ])("that %s is refused with its place", async (_, name, content, where, got) => {
    await writeFile(join(folder, name), content);
    await expect(readPersonas(join(folder, name))).rejects.toMatchObject({
      code: "data",
      where: join(folder, where),
      got: expect.stringMatching(got) as string,
    });
  });
});

describe("readYaml", () => {
  const read = async (name: string, content: string) => {
    await writeFile(join(folder, name), content);
    return readYaml(join(folder, name), "personas");
  };
  const long = `[0${",0".repeat(1_000_000)}]`;

  it("reads JSON of any length, and JSON that only a parser of YAML accepts", async () => {
    expect((await read("long.json", long)).value).toHaveLength(1_000_001);
    expect((await read("id.json", '[{"id": 18446744073709551616}]')).value).toEqual([{ id: 2 ** 64 }]);
    expect((await read("comma.json", '[{"id": "a"},]')).value).toEqual([{ id: "a" }]);
  });
});
