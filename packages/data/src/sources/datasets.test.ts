import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { readdir, readFile, realpath, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parquetWriteBuffer } from "hyparquet-writer";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { codeOption, yamlOption } from "@periodic-eval/contracts/options";
import { chooseSplit, parseDatasetName, cachedSplit, fetchSplit } from "./datasets.ts";
import { datasetCommit, hostDataset, startHub, type HubServer } from "../hub/hub-server.test-data.ts";
import { readSource } from "./read-source.ts";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";
import { errorOf } from "../../../testing/src/error-of.test-data.ts";

const parquet = (...questions: readonly string[]) =>
  new Uint8Array(
    parquetWriteBuffer({ columnData: [{ name: "question", data: [...questions], type: "STRING" }] }),
  );
const sums = {
  "main/test/0001.parquet": parquet("c"),
  "main/test/0000.parquet": parquet("a", "b"),
  "main/train/0000.parquet": parquet("t"),
};

let hub: HubServer;
let cache = "";
let stored = "";
beforeEach(async () => {
  hub = await startHub();
  cache = temporaryFolder();
  stored = join(cache, "datasets--owner--sums");
  vi.stubEnv("HF_ENDPOINT", `${hub.url}/`);
  vi.stubEnv("HF_HUB_CACHE", cache);
  for (const name of ["HF_TOKEN", "HF_HUB_OFFLINE"]) vi.stubEnv(name, "");
  hostDataset(hub, "owner/sums", sums);
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await hub.close();
});

const read = (source: string) => readSource(source, "task.data");
const questionsOf = async (source: string) => (await read(source)).rows.map(({ row }) => row["question"]);
describe("a split of the hub", () => {
  it("concatenates its files in order, and defaults to the only config", async () => {
    const { rows, sha256, hub: provenance } = await read("hf:owner/sums/test");
    expect(rows.map(({ row }) => row["question"])).toEqual(["a", "b", "c"]);
    expect(rows[2]!.place).toBe("hf:owner/sums/main/test/0001.parquet row 0");
    const both = createHash("sha256").update(parquet("a", "b")).update(parquet("c")).digest("hex");
    expect(sha256).toBe(both);
    expect(provenance).toEqual({ hub: "owner/sums", config: "main", split: "test", commit: datasetCommit });
    expect(hub.authorizations.every((one) => one === null)).toBe(true);
  });

  it("is in huggingface_hub's cache layout after the first read, and the second makes no request", async () => {
    const first = await read("hf:owner/sums");
    expect(await readFile(join(stored, "refs", "refs", "convert", "parquet"), "utf8")).toBe(datasetCommit);
    expect(await readdir(join(stored, "snapshots", datasetCommit, "main"))).toEqual(["test"]);
    expect((await readdir(join(stored, "blobs"))).sort()).toEqual(
      [parquet("a", "b"), parquet("c")]
        .map((bytes) => createHash("sha256").update(bytes).digest("hex"))
        .sort(),
    );
    hub.requests.length = 0;
    vi.stubEnv("HF_HUB_OFFLINE", "1");
    expect(await read("hf:owner/sums")).toEqual(first);
    expect(hub.requests).toEqual([]);
  });

  it("stays at the commit of the first request", async () => {
    await read("hf:owner/sums/test");
    const later = "d".repeat(40);
    const { commits } = hub.datasets.get("owner/sums")!;
    hub.datasets.set("owner/sums", {
      revisions: { "refs/convert/parquet": later },
      commits: { ...commits, [later]: new Map([["main/test/0000.parquet", Buffer.from(parquet("z"))]]) },
    });
    expect(await questionsOf("hf:owner/sums/test")).toEqual(["a", "b", "c"]);
    expect(await questionsOf("hf:owner/sums/train")).toEqual(["t"]);
    expect((await fetchSplit("hf:owner/sums/train", "x")).commit).toBe(datasetCommit);
  });

  it.each([
    ["hf:owner/sums", ["d"]],
    ["hf:owner/sums/test", ["d"]],
    ["hf:owner/sums/main", ["a", "b", "c"]],
    ["hf:owner/sums/main/train", ["t"]],
    ["hf:owner/sums/other", ["o"]],
  ])(
    "%s has the config and split that it names, or `default`, `test` and the only one",
    async (source, is) => {
      hostDataset(hub, "owner/sums", {
        ...sums,
        "default/test/0000.parquet": parquet("d"),
        "default/train/0000.parquet": parquet("no"),
        "other/validation/0000.parquet": parquet("o"),
      });
      expect(await questionsOf(source)).toEqual(is);
    },
  );

  it("is ARC-Challenge, test, of allenai/ai2_arc", async () => {
    hostDataset(hub, "allenai/ai2_arc", {
      "ARC-Challenge/test/0000.parquet": parquet("challenge"),
      "ARC-Challenge/train/0000.parquet": parquet("no"),
      "ARC-Easy/test/0000.parquet": parquet("easy"),
    });
    expect(await questionsOf("hf:allenai/ai2_arc")).toEqual(["challenge"]);
    expect(await questionsOf("hf:allenai/ai2_arc/ARC-Easy")).toEqual(["easy"]);
  });

  it("is requested with the token", async () => {
    hostDataset(hub, "owner/sums", sums, { token: "hf_abc", status: 401, message: "Access is restricted." });
    const error = await errorOf(read("hf:owner/sums/test"));
    expect(error).toMatchObject({
      code: "data",
      where: "task.data, hf:owner/sums on the hub",
      got: "status 401 (Access is restricted.)",
    });
    expect(error.fix).toContain("accept its terms on its page and set HF_TOKEN");
    expect(await readdir(cache)).toEqual([]);
    vi.stubEnv("HF_TOKEN", "hf_abc");
    expect(await questionsOf("hf:owner/sums/test")).toEqual(["a", "b", "c"]);
    expect(hub.authorizations.at(-1)).toBe("Bearer hf_abc");
  });

  it("is found in the cache without a request", async () => {
    expect(await cachedSplit("hf:owner/sums/test", "x")).toBe(null);
    const fetched = await fetchSplit("hf:owner/sums/test", "x");
    const requests = hub.requests.length;
    expect(await cachedSplit("hf:owner/sums/test", "x")).toEqual(fetched);
    expect(await cachedSplit("hf:owner/sums/train", "x")).toBe(null);
    expect(hub.requests).toHaveLength(requests);
  });
});

describe("a download", () => {
  const isFile = (path: string) => path.endsWith("0000.parquet");

  it.each([true, false])(
    "caches nothing of a truncated file (ends normally: %s), and resumes",
    async (endsNormally) => {
      hub.tamper = (path) => (isFile(path) ? { stopAfter: 20, endsNormally } : null);
      const error = await errorOf(read("hf:owner/sums/test"));
      expect(error.code).toBe("data");
      expect(error.where).toBe("task.data, hf:owner/sums, main/test/0000.parquet on the hub");
      expect(error.got).toContain(`20 of ${sums["main/test/0000.parquet"].length} bytes`);
      expect(await cachedSplit("hf:owner/sums/test", "x")).toBe(null);
      hub.tamper = null;
      expect(await questionsOf("hf:owner/sums/test")).toEqual(["a", "b", "c"]);
    },
  );

  it("rejects and deletes content whose hash differs from the hub's listing", async () => {
    const bytes = Buffer.from(sums["main/test/0000.parquet"]);
    bytes[10]! ^= 1;
    hub.tamper = (path) => (isFile(path) ? { content: bytes } : null);
    const { got, expected } = await errorOf(read("hf:owner/sums/test"));
    expect(got).toBe(`content with the hash ${createHash("sha256").update(bytes).digest("hex")}`);
    expect(expected).toMatch(/^the hash [0-9a-f]{64} that the hub lists$/);
    expect(await readdir(join(stored, "blobs"))).toEqual([]);
    expect(await cachedSplit("hf:owner/sums/test", "x")).toBe(null);
  });

  it("that something changed in the cache is an error that names the file", async () => {
    const { files } = await fetchSplit("hf:owner/sums/train", "x");
    const path = await realpath(files[0]!.path);
    await writeFile(path, parquet("u"));
    const { where, got, fix } = await errorOf(read("hf:owner/sums/train"));
    expect([where, got.startsWith(`${path} with the SHA-256 `)]).toEqual(["task.data", true]);
    expect(fix).toContain("Delete this file");
    await rm(path);
    expect(await questionsOf("hf:owner/sums/train")).toEqual(["t"]);
  });

  it("that is no Parquet file is an error", async () => {
    hostDataset(hub, "owner/sums", { "main/test/0000.parquet": Buffer.from("rows") });
    expect(await errorOf(read("hf:owner/sums"))).toMatchObject({
      code: "data",
      where: "hf:owner/sums/main/test/0000.parquet",
      expected: "a Parquet file",
    });
  });

  it("of a dataset without Parquet files caches nothing", async () => {
    hostDataset(hub, "owner/sums", { "README.md": Buffer.from("# Sums") });
    expect((await errorOf(read("hf:owner/sums"))).got).toBe("no Parquet file of owner/sums");
    expect(await readdir(cache)).toEqual([]);
  });
});

describe("without the hub", () => {
  it.each([
    ["hf:owner/sums/test", "data get hf:owner/sums/test --out FOLDER"],
    ["hf:allenai/ai2_arc", "data get arc_challenge --out FOLDER"],
  ])("names both remedies for %s when HF_HUB_OFFLINE is set", async (source, command) => {
    vi.stubEnv("HF_HUB_OFFLINE", "1");
    const error = await errorOf(read(source));
    expect(error).toMatchObject({ code: "data", where: "task.data" });
    expect(error.got).toContain(`HF_HUB_OFFLINE, but ${source} is not in the cache ${cache}`);
    for (const remedy of [
      `npx periodic-eval ${command}`,
      "path of a file",
      "copy datasets--",
      "unset HF_HUB_OFFLINE",
    ])
      expect(error.fix).toContain(remedy);
    expect(hub.requests).toEqual([]);
  });

  it.each([
    [codeOption("gsm8k", "data"), "data"],
    [yamlOption("periodic_eval", "alignment_questions"), "alignment_questions"],
  ])("names the option of %o for a file", async (option, spelling) => {
    vi.stubEnv("HF_HUB_OFFLINE", "1");
    const { where, path, fix, detail } = await errorOf(readSource("hf:owner/sums", option));
    expect([where, path, detail]).toEqual([
      option.where,
      option.path,
      { kind: "not-cached", reason: "HF_HUB_OFFLINE" },
    ]);
    expect(fix.split("; ")[0]).toBe(`Name the path of a file in \`${spelling}\``);
  });

  it("names the option of a file that cannot be read, and none for a wrong row", async () => {
    const option = codeOption("gsm8k", "data");
    const missing = await errorOf(readSource(join(cache, "none.jsonl"), option));
    expect(missing).toMatchObject({ ...option, inside: null });
    const file = join(cache, "wrong.jsonl");
    await writeFile(file, "[");
    expect(await errorOf(readSource(file, option))).toMatchObject({ code: "data", path: [] });
  });

  it("does not advise the download that failed to download", async () => {
    vi.stubEnv("HF_HUB_OFFLINE", "1");
    const { fix } = await errorOf(
      readSource("hf:owner/sums", { where: "data get hf:owner/sums", path: [], isDownload: true }),
    );
    expect(fix).toBe(
      `Unset HF_HUB_OFFLINE, or copy datasets--owner--sums from the cache of a machine with network to ${cache}.`,
    );
  });

  it("names both remedies when the hub does not answer, and reads the cache without it", async () => {
    await read("hf:owner/sums/train");
    vi.stubEnv("HF_ENDPOINT", "http://127.0.0.1:1");
    expect(await questionsOf("hf:owner/sums/train")).toEqual(["t"]);
    const { got, fix, cause } = await errorOf(read("hf:owner/other"));
    expect((cause as Error).cause).toBeUndefined();
    expect(got).toMatch(/^no answer from the hub \(fetch failed \(.+\)\), and hf:owner\/other is not in the/);
    for (const remedy of ["data get hf:owner/other --out FOLDER", "path of a file", "HF_ENDPOINT"])
      expect(fix).toContain(remedy);
  });
});

describe("invalid sources", () => {
  it.each([
    ["hf:owner/sums/main/tset", 'the split "tset" of owner/sums, config main', 'Did you mean "test"?'],
    ["hf:owner/sums/mian/test", 'the config "mian" of owner/sums', 'Did you mean "main"?'],
    ["hf:owner/other/test", "status 404 (Repository not found)", "Check the name"],
    ["hf:sums", '"hf:sums"', "Copy the name"],
  ])("rejects %s", async (source, got, fix) => {
    const error = await errorOf(read(source));
    expect([error.code, error.got]).toEqual(["data", got]);
    expect(error.where).toMatch(/^task\.data/);
    expect(error.fix).toContain(fix);
  });

  it("rejects a dataset of several configs without a name", async () => {
    hostDataset(hub, "owner/sums", { ...sums, "other/test/0000.parquet": parquet("o") });
    expect(await errorOf(read("hf:owner/sums/test"))).toMatchObject({
      where: "task.data",
      got: "no config of owner/sums, which has 2",
      expected: "one of main, other",
    });
    expect(await errorOf(read("hf:owner/sums/othr"))).toMatchObject({
      got: 'the config "othr" of owner/sums',
      expected: "one of main, other",
      fix: 'Did you mean "other"?',
    });
  });

  it("suggests a config or a split for one name after the dataset", async () => {
    const arc = (split: string) => [`ARC-Challenge/${split}/0000.parquet`, `ARC-Easy/${split}/0000.parquet`];
    const paths = ["test", "train", "validation"].flatMap(arc);
    const choose = (name: string) =>
      chooseSplit(parseDatasetName(`hf:allenai/ai2_arc/${name}`, "task.data"), paths, "task.data");
    const refused = async (name: string) => errorOf(Promise.resolve().then(() => choose(name)));
    expect(await refused("ARC-Easi")).toMatchObject({
      got: 'the config "ARC-Easi" of allenai/ai2_arc',
      expected: "a config (ARC-Challenge, ARC-Easy) or a split (test, train, validation)",
      fix: 'Did you mean "ARC-Easy"?',
    });
    for (const name of ["trian", "ARC-Easy/trian"])
      expect(await refused(name)).toMatchObject({ fix: 'Did you mean "train"?' });
    expect(choose("ARC-Easy")).toEqual({ config: "ARC-Easy", split: "test" });
  });

  it.each([
    [401, "set HF_TOKEN"],
    [429, "the hub limits the rate of requests"],
    [500, "or name a file"],
  ])("explains a response with status %i", async (status, fix) => {
    hub.status = status;
    const error = await errorOf(read("hf:owner/sums/test"));
    expect(error.got).toContain(`status ${status}`);
    expect(error.fix).toContain(fix);
  });

  it("rejects an invalid HF_TOKEN or HF_ENDPOINT", async () => {
    for (const token of ["abc", "hf_two\nabc", "hf_abc…"]) {
      vi.stubEnv("HF_TOKEN", token);
      const error = await errorOf(read("hf:owner/sums/test"));
      expect([error.code, error.where]).toEqual(["config", "HF_TOKEN"]);
      expect(error.message).not.toContain("abc");
    }
    vi.stubEnv("HF_TOKEN", "");
    vi.stubEnv("HF_ENDPOINT", "hub");
    expect(await errorOf(read("hf:owner/sums/test"))).toMatchObject({ where: "HF_ENDPOINT", got: '"hub"' });
  });
});

it("parses only valid names of datasets", () => {
  expect(parseDatasetName("hf:a/b/c/d", "x")).toEqual({ dataset: "a/b", names: ["c", "d"] });
  expect(parseDatasetName("hf:a/b", "x")).toEqual({ dataset: "a/b", names: [] });
  for (const text of [
    "a/b",
    "hf:a",
    "hf:a/b/c/d/e",
    "hf:a/../c",
    "hf:a//c",
    "hf:a/b/c?x",
    "hf:a--b/c",
    "hf:",
    "",
  ])
    expect(() => parseDatasetName(text, "x")).toThrow("expected hf:owner/dataset");
});

it("imports the hub library lazily, so that local folders do not pay for it", () => {
  const source = readFileSync(fileURLToPath(new URL("../hub/repository.ts", import.meta.url)), "utf8");
  expect(source).not.toMatch(/^import (?!type).*@huggingface\/hub/m);
});
