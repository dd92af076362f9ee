import { createHash } from "node:crypto";
import { parquetWriteBuffer } from "hyparquet-writer";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { startDatasetHub, type DatasetHub } from "./dataset-hub.test-data.ts";
import { parseHubSplit } from "./hub.ts";
import { readDocuments } from "./read-documents.ts";

const parquet = (...questions: readonly string[]) =>
  new Uint8Array(
    parquetWriteBuffer({ columnData: [{ name: "question", data: [...questions], type: "STRING" }] }),
  );

let hub: DatasetHub;
beforeEach(async () => {
  hub = await startDatasetHub();
  vi.stubEnv("HF_ENDPOINT", `${hub.url}/`);
  vi.stubEnv("HF_TOKEN", "");
  hub.datasets.set(
    "owner/sums",
    new Map([
      ["main/test/0001.parquet", parquet("c")],
      ["main/test/0000.parquet", parquet("a", "b")],
      ["main/train/0000.parquet", parquet("t")],
    ]),
  );
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await hub.close();
});

describe("a split of the hub", () => {
  it("concatenates its files in order, and defaults to the only config", async () => {
    const { rows, sha256, provenance } = await readDocuments("hf:owner/sums/test", "task.data");
    expect(rows.map(({ row }) => row["question"])).toEqual(["a", "b", "c"]);
    expect(rows[2]!.place).toBe("hf:owner/sums/main/test/0001.parquet row 0");
    const both = createHash("sha256").update(parquet("a", "b")).update(parquet("c")).digest("hex");
    expect(sha256).toBe(both);
    expect(provenance).toEqual({ hub: "owner/sums", config: "main", split: "test", sha256, rows: 3 });
    expect(hub.requests.every((request) => request.endsWith(" -"))).toBe(true);
  });

  it("reads the named config, or `default`", async () => {
    const files = hub.datasets.get("owner/sums")!;
    files.set("default/test/0000.parquet", parquet("d"));
    const of = async (source: string) =>
      (await readDocuments(source, "task.data")).rows.map(({ row }) => row["question"]);
    expect(await of("hf:owner/sums/main/train")).toEqual(["t"]);
    expect(await of("hf:owner/sums/test")).toEqual(["d"]);
    files.delete("default/test/0000.parquet");
    files.set("other/test/0000.parquet", parquet("o"));
    await expect(of("hf:owner/sums/test")).rejects.toThrow(
      "task.data: got no config of owner/sums, which has 2, expected one of main, other",
    );
  });

  it("is requested with the token", async () => {
    vi.stubEnv("HF_TOKEN", "hf_abc");
    await readDocuments("hf:owner/sums/test", "task.data");
    expect(hub.requests.every((request) => request.endsWith(" Bearer hf_abc"))).toBe(true);
  });
});

describe("invalid sources", () => {
  it.each([
    ["hf:owner/sums/main/tset", 'the split "tset" of owner/sums, config main', 'Did you mean "test"?'],
    ["hf:owner/sums/mian/test", 'the config "mian" of owner/sums', 'Did you mean "main"?'],
    ["hf:owner/other/test", "status 404 for owner/other", "Check the name"],
    ["hf:sums/test", '"hf:sums/test", expected hf:owner/dataset/split', "Use the split's name"],
  ])("rejects %s", async (source, got, fix) => {
    const failed = readDocuments(source, "task.data");
    await expect(failed).rejects.toThrow(`task.data: got ${got}`);
    await expect(failed).rejects.toThrow(fix);
  });

  it("rejects content whose hash differs from the hub's listing", async () => {
    hub.tampered = parquet("x", "y");
    await expect(readDocuments("hf:owner/sums/test", "task.data")).rejects.toThrow(
      /got owner\/sums\/main\/test\/0000\.parquet with the SHA-256 [0-9a-f]{64}, expected the /,
    );
  });

  it.each([
    [401, "set HF_TOKEN"],
    [429, "the hub limits requests"],
    [500, "or name a file"],
  ])("explains a response with status %i", async (status, fix) => {
    hub.status = status;
    await expect(readDocuments("hf:owner/sums/test", "task.data")).rejects.toThrow(fix);
  });

  it("rejects an invalid HF_TOKEN or HF_ENDPOINT", async () => {
    vi.stubEnv("HF_TOKEN", "abc");
    await expect(readDocuments("hf:owner/sums/test", "x")).rejects.toThrow("HF_TOKEN: got another string");
    vi.stubEnv("HF_TOKEN", "");
    vi.stubEnv("HF_ENDPOINT", "hub");
    await expect(readDocuments("hf:owner/sums/test", "x")).rejects.toThrow('HF_ENDPOINT: got "hub"');
  });
});

it("parses only valid names of a dataset split", () => {
  expect(parseHubSplit("a/b/c/d")).toEqual({ dataset: "a/b", config: "c", split: "d" });
  for (const text of ["a/b", "a/b/c/d/e", "a/../c", "a//c", "a/b/c?x", ""])
    expect(parseHubSplit(text)).toBeNull();
});
