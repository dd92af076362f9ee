import { execFileSync } from "node:child_process";
import { mkdir, mkdtemp, readFile, rm, symlink, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PeriodicEvalError } from "@periodic-eval/core";
import fc from "fast-check";
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { useBackend } from "../backend/use-backend.ts";
import {
  dataOf,
  headerOf,
  safetensorsOf,
  watchFilesAndMemory,
  watchTensors,
  type Entry,
  type Header,
} from "../testing/hostile.ts";
import { refusalOf } from "../testing/refusal.ts";
import { tinyConfig } from "../testing/tiny-config.ts";
import { createCausalLM } from "./create-causal-lm.ts";
import { loadCausalLM } from "./load-causal-lm.ts";

vi.mock("node:fs/promises", async (original) => {
  const { recorded } = await import("../testing/opened-files.ts");
  return recorded(await original());
});

let root = "";
let folder = "";
let good: Buffer;
beforeAll(async () => {
  await useBackend({ backend: "cpu" });
  root = await mkdtemp(join(tmpdir(), "hostile-"));
  const model = createCausalLM(tinyConfig, { seed: "a", initStd: 0.3 });
  await model.save(join(root, "good"));
  model.dispose();
  good = await readFile(join(root, "good", "model.safetensors"));
});
afterAll(() => rm(root, { recursive: true }));
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
const refused = () => refusalOf(() => loadCausalLM(folder));
/** The good file with another entry for one tensor. */
const withEntry = (change: (entry: Entry) => unknown, tensor = name): Buffer => {
  const header = headerOf(good);
  return file({ ...header, [tensor]: change(header[tensor]!) });
};
const withHeader = (change: (header: Header) => object) => file(change(headerOf(good)));

describe("safetensors that are cut off", () => {
  // 23 places in the length and the header, 40 in all of the file, the same in every run.
  const drawn = fc.sample(fc.integer({ min: 0, max: 9999 }), { numRuns: 40, seed: 7 }).map((n) => n / 10_000);
  const places = Array.from({ length: 23 }, (_, i) => i / 23).concat(drawn);
  it.each(places.map((share, i) => [i, share] as const))("case %i, at %f", async (i, share) => {
    const end = i < 23 ? 8 + Number(good.readBigUInt64LE(0)) : good.length - 1;
    await weights(good.subarray(0, Math.floor(share * end)));
    expect((await refused()).where).toContain(join(folder, "model.safetensors"));
  });
});

describe("safetensors with changed bytes", () => {
  const seeds = Array.from({ length: 60 }, (_, i) => i);
  it.each(seeds)("in the header, seed %i: refused, or a name nobody reads", async (seed) => {
    const changed = Buffer.from(good);
    const end = 8 + Number(good.readBigUInt64LE(0));
    for (const [at, byte] of fc.sample(fc.tuple(fc.nat(end - 1), fc.nat(255)), {
      numRuns: 1 + (seed % 4),
      seed,
    }))
      changed[at] = byte;
    await weights(changed);
    const outcome: unknown = await loadCausalLM(folder).catch((error: unknown) => error);
    if (PeriodicEvalError.is(outcome, "model")) return;
    // What loads must be the good model still: its header says the same.
    expect(outcome).toHaveProperty("dispose");
    (outcome as { dispose(): void }).dispose();
  });
});

const big = 2 ** 53 - 1;
const deep = (open: string, close: string, count: number) => open.repeat(count) + close.repeat(count);

describe("safetensors that were made up", () => {
  const headers: readonly (readonly [string, () => Buffer])[] = [
    ["an empty file", () => Buffer.alloc(0)],
    ["a length alone", () => file("", Buffer.alloc(0))],
    ["a header of 10 GB", () => file("{}", Buffer.alloc(0), 10_000_000_000n)],
    ["a header of 2^64 − 1 bytes", () => file("{}", Buffer.alloc(0), 2n ** 64n - 1n)],
    ["a header of 2^63 bytes", () => file("{}", Buffer.alloc(0), 2n ** 63n)],
    ["a header that is a byte longer than the file", () => file("{}", Buffer.alloc(0), 3n)],
    ["no JSON", () => file("not json")],
    ["JSON cut off", () => file('{"a":')],
    ["no UTF-8", () => file(Buffer.from([0x7b, 0xff, 0xfe, 0x7d]))],
    ["UTF-8 with a mark before it", () => file("\uFEFF{}")],
    ["UTF-16", () => file(Buffer.from("{}", "utf16le"))],
    ...["null", "[]", '"text"', "7", "true", "{}", "[[]]"].map((json) => [json, () => file(json)] as const),
    ["lists in lists, a million deep", () => file(deep("[", "]", 1_000_000))],
    ["objects in objects, ten thousand deep", () => file(`${'{"a":'.repeat(10_000)}1${"}".repeat(10_000)}`)],
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
      "a tensor twice, spelt differently",
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
    ["metadata that are a list", () => withHeader((header) => ({ ...header, __metadata__: [] }))],
    [
      "metadata that hold numbers",
      () => withHeader((header) => ({ ...header, __metadata__: { format: 1 } })),
    ],
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
    expect((await refused()).where).toContain(folder);
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
    ["another dtype, twice as long", (entry) => ({ ...entry, dtype: "F64" })],
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
    expect((await refused()).where).toMatch(/, tensor /);
  });

  it("a file with holes that says it holds a terabyte", async () => {
    const terabyte = 2 ** 40;
    const header = JSON.stringify({
      [name]: { dtype: "U8", shape: [terabyte], data_offsets: [0, terabyte] },
    });
    await weights(file(header, Buffer.alloc(0)));
    await truncate(join(folder, "model.safetensors"), 8 + header.length + terabyte).catch(() => undefined);
    await refused();
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
  const spelt = [
    "shard.safetensors\0",
    "\0.safetensors",
    "../outside\0.safetensors",
    "shard.safetensors\n",
    "．．／x.safetensors",
  ];
  const others = ["a".repeat(100_000), 7, null, [], {}, true, ["shard.safetensors"]];
  const names: readonly unknown[] = paths.split(/[|\n]/).concat(spelt, others as string[]);
  it.each(names.map((shard) => [JSON.stringify(shard).slice(0, 60), shard] as const))(
    "that names %s",
    async (_, shard) => {
      await index(map(shard));
      expect((await refused()).where).toContain("index.json");
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
    [deep("[", "]", 100_000)],
    [`{"weight_map":${'{"a":'.repeat(50_000)}1${"}".repeat(50_000)}}`],
  ])("%.50s", async (text) => {
    await index(text);
    await refused();
  });

  it("whose shard is a link out of the folder", async () => {
    await symlink(join("..", "outside.safetensors"), join(folder, "linked.safetensors"));
    await index(map("linked.safetensors"));
    const { got } = await refused();
    expect(got).toMatch(/^a link to .*outside\.safetensors$/);
  });

  it("whose shard is a link to itself, to nothing, or a folder", async () => {
    await symlink("loop.safetensors", join(folder, "loop.safetensors"));
    await symlink("gone", join(folder, "gone.safetensors"));
    await mkdir(join(folder, "folder.safetensors"));
    for (const shard of ["loop.safetensors", "gone.safetensors", "folder.safetensors"]) {
      await index(map(shard));
      await refused();
    }
  });

  it("whose shard is a link within the folder loads", async () => {
    await symlink("shard.safetensors", join(folder, "linked.safetensors"));
    await index(map("linked.safetensors"));
    (await loadCausalLM(folder)).dispose();
  });
});

describe("links of a folder", () => {
  it.each(["model.safetensors", "config.json"])("%s that leads out of it is not opened", async (linked) => {
    await writeFile(join(root, linked), linked === "config.json" ? JSON.stringify(tinyConfig) : good);
    await weights(good);
    await rm(join(folder, linked));
    await symlink(join(root, linked), join(folder, linked));
    expect((await refused()).got).toContain("a link to ");
  });

  it("a tokenizer file that leads out of it is not copied into what is saved", async () => {
    await weights(good);
    await writeFile(join(root, "secret"), "a key");
    await symlink(join(root, "secret"), join(folder, "tokenizer.model"));
    const model = await loadCausalLM(folder);
    const error = await refusalOf(() => model.save(join(folder, "saved")));
    model.dispose();
    expect(error.where).toContain("tokenizer.model");
  });

  it.skipIf(process.platform === "win32")("a pipe in a file's place is not waited for", async () => {
    execFileSync("mkfifo", [join(folder, "model.safetensors")]);
    expect((await refused()).got).toBe("a pipe, socket or device");
  });
});
