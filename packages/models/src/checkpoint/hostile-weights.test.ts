import { mkdir, mkdtemp, readFile, symlink, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { useBackend } from "../backend/use-backend.ts";
import {
  dataOf,
  deep,
  expectModelOrError,
  headerOf,
  modelErrorOf,
  safetensorsOf,
  watchFilesAndMemory,
  watchTensors,
  withChangedHeader,
  type Entry,
  type Header,
} from "../testing/hostile.test-data.ts";
import { tinyConfig } from "../testing/tiny-config.test-data.ts";
import { createCausalLM } from "./create-causal-lm.ts";
import { loadCausalLM } from "./load-causal-lm.ts";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";

vi.mock("node:fs/promises", async (original) => {
  const { recorded } = await import("../testing/opened-files.test-data.ts");
  return recorded(await original());
});

const root = temporaryFolder(afterAll);
let folder = "";
let good: Buffer;
beforeAll(async () => {
  await useBackend({ backend: "cpu" });
  const model = createCausalLM(tinyConfig, { seed: "a", initStd: 0.3 });
  await model.save(join(root, "good"));
  model.dispose();
  good = await readFile(join(root, "good", "model.safetensors"));
});
beforeEach(async () => {
  folder = await mkdtemp(join(root, "case-"));
  await writeFile(join(folder, "config.json"), JSON.stringify(tinyConfig));
});
watchFilesAndMemory(() => folder);
watchTensors();

const name = "model.layers.0.mlp.up_proj.weight";
const file = (header: string | Buffer | object, data = dataOf(good), length?: bigint) =>
  safetensorsOf(header, data, length);
const weights = (content: Buffer) => writeFile(join(folder, "model.safetensors"), content);
const loadError = () => modelErrorOf(() => loadCausalLM(folder));
/** Returns the valid file with a changed entry for one tensor. */
const withEntry = (change: (entry: Entry) => unknown, tensor = name): Buffer => {
  const header = headerOf(good);
  return file({ ...header, [tensor]: change(header[tensor]!) });
};
const withHeader = (change: (header: Header) => object) => file(change(headerOf(good)));

describe("loading rejects safetensors that are cut off", () => {
  // 23 positions in the length and the header, 40 in the whole file, the same in every run.
  const drawn = fc.sample(fc.integer({ min: 0, max: 9999 }), { numRuns: 40, seed: 7 }).map((n) => n / 10_000);
  const places = Array.from({ length: 23 }, (_, i) => i / 23).concat(drawn);
  it.each(places.map((share, i) => [i, share] as const))("case %i, at %f", async (i, share) => {
    const end = i < 23 ? 8 + Number(good.readBigUInt64LE(0)) : good.length - 1;
    await weights(good.subarray(0, Math.floor(share * end)));
    expect((await loadError()).where).toContain(join(folder, "model.safetensors"));
  });
});

// A changed byte may hit a name that nobody reads; then the model loads.
it.each(Array.from({ length: 60 }, (_, i) => i))(
  "rejects a header with changed bytes or loads the unchanged model, seed %i",
  async (seed) => {
    await weights(withChangedHeader(good, seed, 1 + (seed % 4)));
    await expectModelOrError(() => loadCausalLM(folder));
  },
);

const big = 2 ** 53 - 1;

describe("loading rejects safetensors with", () => {
  const headers: readonly (readonly [string, () => Buffer])[] = [
    ["an empty file", () => Buffer.alloc(0)],
    ["only a length", () => file("", Buffer.alloc(0))],
    ["a header of 10 GB", () => file("{}", Buffer.alloc(0), 10_000_000_000n)],
    ["a header of 2^64 − 1 bytes", () => file("{}", Buffer.alloc(0), 2n ** 64n - 1n)],
    ["a header of 2^63 bytes", () => file("{}", Buffer.alloc(0), 2n ** 63n)],
    ["a header that is one byte longer than the file", () => file("{}", Buffer.alloc(0), 3n)],
    ["a header that is not JSON", () => file("not json")],
    ["incomplete JSON", () => file('{"a":')],
    ["invalid UTF-8", () => file(Buffer.from([0x7b, 0xff, 0xfe, 0x7d]))],
    ["a byte order mark", () => file("\uFEFF{}")],
    ["UTF-16", () => file(Buffer.from("{}", "utf16le"))],
    ...["null", "[]", '"text"', "7", "true", "{}", "[[]]"].map((json) => [json, () => file(json)] as const),
    ["arrays nested a million deep", () => file(deep("[", "]", 1_000_000))],
    ["objects nested ten thousand deep", () => file(`${'{"a":'.repeat(10_000)}1${"}".repeat(10_000)}`)],
    [
      "a shape nested ten thousand deep",
      () => file(`{"a":{"dtype":"F32","shape":${deep("[", "]", 10_000)},"data_offsets":[0,4]}}`),
    ],
    [
      "a tensor twice",
      () =>
        file(
          JSON.stringify(headerOf(good)).replace("{", `{"${name}":${JSON.stringify(headerOf(good)[name])},`),
        ),
    ],
    [
      "a tensor twice, once with an escaped name",
      () =>
        file(
          JSON.stringify(headerOf(good)).replace(
            "{",
            `{"\\u006dodel.norm.weight":{"dtype":"F32","shape":[8],"data_offsets":[0,32]},`,
          ),
        ),
    ],
    [
      "a dtype twice",
      () => file(JSON.stringify(headerOf(good)).replace('{"dtype"', '{"dtype":"F32","dtype"')),
    ],
    ["an array as metadata", () => withHeader((header) => ({ ...header, __metadata__: [] }))],
    ["a number in the metadata", () => withHeader((header) => ({ ...header, __metadata__: { format: 1 } }))],
    [
      "a tensor named __proto__",
      () =>
        file(
          JSON.stringify(headerOf(good)).replace(
            "{",
            '{"__proto__":{"dtype":"F32","shape":[0],"data_offsets":[0,0]},',
          ),
        ),
    ],
    [
      "a tensor named constructor",
      () =>
        withHeader((header) => ({
          ...header,
          constructor: { dtype: "F32", shape: [0], data_offsets: [0, 0] },
        })),
    ],
    [
      "a name of a megabyte",
      () =>
        withHeader((header) => ({
          ["x".repeat(1e6)]: { dtype: "X", shape: [], data_offsets: [0, 0] },
          ...header,
        })),
    ],
    ["data after the last tensor", () => Buffer.concat([good, Buffer.alloc(1)])],
    ["no data", () => file(headerOf(good), Buffer.alloc(0))],
  ];
  it.each(headers)("%s", async (_, content) => {
    await weights(content());
    expect((await loadError()).where).toContain(folder);
  });

  const entries: readonly (readonly [string, (entry: Entry) => unknown])[] = [
    ...[null, [], "F32", 7].map((value) => [`an entry ${JSON.stringify(value)}`, () => value] as const),
    ["an empty entry", () => ({})],
    ...["dtype", "shape", "data_offsets"].map(
      (key) => [`no ${key}`, (entry: Entry) => ({ ...entry, [key]: undefined })] as const,
    ),
    ...["F31", "f32", "F8_E4M3", "", "__proto__", "toString", null, 32, ["F32"], {}].map(
      (dtype) => [`dtype ${JSON.stringify(dtype)}`, (entry: Entry) => ({ ...entry, dtype })] as const,
    ),
    ["a dtype of twice the size", (entry) => ({ ...entry, dtype: "F64" })],
    ...[
      [-12, 8],
      [12, -8],
      [-12, -8],
      [12.5, 8],
      [1e308, 1e308],
      [big, big, big],
      [big, 0],
      [1e308, 1e308, 0],
      [96],
      [8, 12],
      [12, 8, 1],
      [],
      ["12", "8"],
      [12, null],
      [true, 96],
      [[12], [8]],
      { 0: 12, 1: 8, length: 2 },
      "12,8",
      12,
      null,
      Array.from({ length: 100_000 }, () => 1),
    ].map(
      (shape) =>
        [`shape ${JSON.stringify(shape).slice(0, 40)}`, (entry: Entry) => ({ ...entry, shape })] as const,
    ),
    ...[
      [0, 384],
      [1, 385],
      [-384, 0],
      [384, 0],
      [0, 1e18],
      [big - 384, big],
      [1e6, 1e6 + 384],
      [0.5, 384.5],
      [0],
      [],
      [0, 384, 768],
      ["0", "384"],
      [null, null],
      {},
      "0,384",
      null,
    ].map(
      (offsets) =>
        [
          `data_offsets ${JSON.stringify(offsets)}`,
          (entry: Entry) => ({ ...entry, data_offsets: offsets }),
        ] as const,
    ),
    ["NaN-like sizes", (entry) => ({ ...entry, shape: ["NaN", "Infinity"] })],
  ];
  it.each(entries)("a tensor with %s", async (_, change) => {
    await weights(withEntry(change));
    expect((await loadError()).where).toMatch(/, tensor /);
  });

  it("a terabyte of data in a sparse file", async () => {
    const terabyte = 2 ** 40;
    const header = JSON.stringify({
      [name]: { dtype: "U8", shape: [terabyte], data_offsets: [0, terabyte] },
    });
    await weights(file(header, Buffer.alloc(0)));
    await truncate(join(folder, "model.safetensors"), 8 + header.length + terabyte).catch(() => undefined);
    await loadError();
  });
});

describe("an index of shards", () => {
  const index = (content: unknown) =>
    writeFile(
      join(folder, "model.safetensors.index.json"),
      typeof content === "string" ? content : JSON.stringify(content),
    );
  beforeEach(async () => {
    await writeFile(join(folder, "shard.safetensors"), good);
    await writeFile(join(root, "outside.safetensors"), good);
  });
  const map = (shard: unknown) => ({
    weight_map: Object.fromEntries(
      Object.keys(headerOf(good))
        .filter((key) => key !== "__metadata__")
        .map((key) => [key, shard]),
    ),
  });

  const paths = String.raw`../outside.safetensors|..\outside.safetensors|/etc/passwd|/tmp/outside.safetensors|..|.||~/x.safetensors
C:\outside.safetensors|C:outside.safetensors|\\host\share\outside.safetensors|sub/../../outside.safetensors|./shard.safetensors
.hidden.safetensors|%2e%2e%2foutside.safetensors|shard.safetensors/|file:///etc/passwd|shard.bin|shard .safetensors|-rf.safetensors`;
  const unusual = [
    "shard.safetensors\0",
    "\0.safetensors",
    "../outside\0.safetensors",
    "shard.safetensors\n",
    "．．／x.safetensors",
  ];
  const others = ["a".repeat(100_000), 7, null, [], {}, true, ["shard.safetensors"]];
  const names: readonly unknown[] = paths.split(/[|\n]/).concat(unusual, others as string[]);
  it.each(names.map((shard) => [JSON.stringify(shard).slice(0, 60), shard] as const))(
    "is rejected if it names %s",
    async (_, shard) => {
      await index(map(shard));
      expect((await loadError()).where).toContain("index.json");
    },
  );

  it.each([
    ["{"],
    ["[]"],
    ["null"],
    ["7"],
    ["{}"],
    ['{"weight_map":null}'],
    ['{"weight_map":[]}'],
    ['{"weight_map":"shard.safetensors"}'],
    ['{"weight_map":{}}'],
    ['{"weight_map":{"__proto__":"../x"}}'],
    ['{"__proto__":{"weight_map":{"a":"shard.safetensors"}}}'],
    ['{"weight_map":{"a":"shard.safetensors"}}'],
    ['{"weight_map":{"a":"none.safetensors"}}'],
  ])("is rejected with the content %.50s", async (text) => {
    await index(text);
    await loadError();
  });

  it("is rejected if a shard is a link to itself, a broken link or a folder", async () => {
    await symlink("loop.safetensors", join(folder, "loop.safetensors"));
    await symlink("gone", join(folder, "gone.safetensors"));
    await mkdir(join(folder, "folder.safetensors"));
    for (const shard of ["loop.safetensors", "gone.safetensors", "folder.safetensors"]) {
      await index(map(shard));
      await loadError();
    }
  });
});
