import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { PeriodicEvalError } from "@periodic-eval/contracts";
import fc from "fast-check";
import { afterAll, describe, expect, it } from "vitest";
import { openSafetensors, readSafetensorsHeader } from "./read.ts";
import { writeSafetensors, type TensorToWrite } from "./write.ts";
import { temporaryFolder } from "../../testing/src/temporary-folder.test-data.ts";

const folder = temporaryFolder(afterAll);

const shape = fc.array(fc.integer({ min: 0, max: 5 }), { maxLength: 3 });
const name = fc
  .string({ minLength: 1, maxLength: 12, unit: "binary" })
  .filter((name) => name !== "__metadata__");
const tensor = fc.tuple(name, shape, fc.boolean(), fc.integer()).map(([name, shape, whole, salt]) => {
  const size = shape.reduce((product, n) => product * n, 1);
  const values = whole
    ? Int32Array.from({ length: size }, (_, i) => Math.imul(salt, i + 1))
    : Float32Array.from({ length: size }, (_, i) => Math.fround(Math.sin(salt + i) * 1e20));
  return { name, shape, values, ...(whole ? { dtype: "I32" as const } : {}) };
});

describe("writeSafetensors, then openSafetensors", () => {
  it("reads back the written tensors", async () => {
    const tensors = fc.uniqueArray(tensor, { selector: ({ name }) => name, maxLength: 6 });
    const metadata = fc.dictionary(name, fc.string());
    let run = 0;
    await fc.assert(
      fc.asyncProperty(tensors, metadata, async (tensors, metadata) => {
        const path = join(folder, `${run++}.safetensors`);
        await writeSafetensors(
          path,
          tensors.map(({ values, ...rest }) => ({ ...rest, values: () => values })),
          { metadata },
        );
        const file = await openSafetensors(path);
        expect(new Map(Object.entries(file.metadata))).toEqual(new Map(Object.entries(metadata)));
        expect([...file.tensors.keys()].sort()).toEqual(tensors.map(({ name }) => name).sort());
        for (const { name, shape, values } of tensors) {
          expect(file.tensors.get(name)!.shape).toEqual(shape);
          expect(await file.read(name)).toEqual(values);
        }
        await file.close();
      }),
      { numRuns: 60 },
    );
  });

  it("narrows to the requested type", async () => {
    const path = join(folder, "narrow.safetensors");
    // 0.1 in bfloat16 is 0x3dcd = 0.10009765625; in float16 0x2e66 = 0.0999755859375.
    for (const [dtype, value] of [
      ["BF16", 0.10009765625],
      ["F16", 0.0999755859375],
    ] as const) {
      await writeSafetensors(path, [floats("x", [1], 0.1)], { dtype });
      const file = await openSafetensors(path);
      expect(file.tensors.get("x")!.dtype).toBe(dtype);
      expect([...(await file.read("x"))]).toEqual([value]);
      await file.close();
    }
  });

  it.each(["F32", "BF16", "F16"] as const)(
    "reads any range of %s, and throws for an invalid one",
    async (dtype) => {
      const path = join(folder, `range-${dtype}.safetensors`);
      // Integers below 256 are exact in all three.
      const all = Array.from({ length: 15 }, (_, i) => 7 * i - 40);
      await writeSafetensors(path, [floats("before", [2], 1, 2), floats("x", [5, 3], ...all)], { dtype });
      const file = await openSafetensors(path);
      for (let from = 0; from <= 15; from++)
        for (let to = from; to <= 15; to++)
          expect([...(await file.read("x", [from, to]))]).toEqual(all.slice(from, to));
      for (const range of [
        [0, 16],
        [-1, 2],
        [3, 2],
        [0, 1.5],
      ] as const) {
        await expect(file.read("x", range)).rejects.toThrow(
          `tensor x: got the range [${range.join(", ")}], expected integers with 0 ≤ from ≤ to ≤ 15, the number of values`,
        );
      }
      await file.close();
    },
  );

  it("keeps the old file and leaves no temporary file when a tensor throws", async () => {
    const path = join(folder, "kept.safetensors");
    await writeSafetensors(path, [floats("x", [2], 1, 2)]);
    const before = await readFile(path);
    const failing: TensorToWrite = { name: "y", shape: [1], values: () => Promise.reject(new Error("gone")) };
    await expect(writeSafetensors(path, [floats("x", [1], 5), failing])).rejects.toThrow(/kept\.safetensors/);
    await expect(writeSafetensors(path, [floats("x", [3], 5)])).rejects.toThrow(
      /tensor x: got 1 values, expected 3/,
    );
    await expect(writeSafetensors(path, [floats("x", [1], 5), floats("x", [1], 6)])).rejects.toThrow(
      /second tensor/,
    );
    expect(await readFile(path)).toEqual(before);
    expect((await readdir(folder)).filter((name) => name.endsWith(".tmp"))).toEqual([]);
  });
});

describe("a damaged file", () => {
  const f32 = (begin: number, end: number, shape = [(end - begin) / 4]) => ({
    dtype: "F32",
    shape,
    data_offsets: [begin, end],
  });

  it.each([
    ["empty", Buffer.alloc(0), /0 bytes, expected at least 8 bytes/],
    ["shorter than a length", Buffer.alloc(7), /7 bytes, expected at least 8 bytes/],
    [
      "with a header longer than the file",
      lengthThen(1000n, "{}"),
      /header of 1000 bytes, expected at most 2/,
    ],
    ["with a header of 2^63 bytes", lengthThen(2n ** 63n, "{}"), /header of 9223372036854775808 bytes/],
    ["with a truncated header", lengthThen(2n, '{"'), /invalid JSON/],
    ["with a header that is not an object", lengthThen(2n, "[]"), /not a JSON object/],
    [
      "with a header that is not UTF-8",
      Buffer.concat([lengthThen(2n, ""), Buffer.from([0xff, 0xfe])]),
      /not UTF-8/,
    ],
    ["with data and no tensor", file({}, 4), /a file of 14 bytes, expected the 10 bytes/],
    ["that is truncated", file({ x: f32(0, 8) }, 4), /expected the \d+ bytes that its header describes/],
    ["longer than its tensors", file({ x: f32(0, 8) }, 12), /bytes that its header describes/],
    [
      "with tensors that overlap",
      file({ x: f32(0, 8), y: f32(4, 12) }, 12),
      /tensor y: got data that begins at byte 4, expected byte 8/,
    ],
    [
      "with a gap",
      file({ x: f32(0, 4), y: f32(8, 12) }, 12),
      /tensor y: got data that begins at byte 8, expected byte 4/,
    ],
    ["with an unknown dtype", file({ x: { ...f32(0, 4), dtype: "F4" } }, 4), /tensor x: got dtype "F4"/],
    [
      "with the name of a method as dtype",
      file({ x: { ...f32(0, 4), dtype: "toString" } }, 4),
      /got dtype "toString"/,
    ],
    [
      "with a shape that does not match its bytes",
      file({ x: f32(0, 4, [2]) }, 4),
      /tensor x: got 4 bytes, expected 8 bytes for F32 \[2\]/,
    ],
    [
      "with a shape beyond safe integers",
      file({ x: f32(0, 4, [2 ** 50, 2 ** 50]) }, 4),
      /tensor x: got 4 bytes/,
    ],
    ["with a negative size", file({ x: f32(0, 4, [-1]) }, 4), /got shape \[-1\]/],
    [
      "with reversed offsets",
      file({ x: { ...f32(0, 4), data_offsets: [4, 0] } }, 4),
      /got data_offsets \[4,0\]/,
    ],
    [
      "with a fraction as offset",
      file({ x: { ...f32(0, 4), data_offsets: [0.5, 4] } }, 4),
      /got data_offsets/,
    ],
    ["with a tensor that is null", file({ x: null }, 0), /tensor x: got null/],
    [
      "with metadata that are not strings",
      file({ __metadata__: { a: 1 } }, 0),
      /values that are not strings/,
    ],
  ])("%s is rejected", async (_, bytes, message) => {
    const path = join(folder, "hostile.safetensors");
    await writeFile(path, bytes);
    const error = await readSafetensorsHeader(path).catch((error: unknown) => error);
    expect(PeriodicEvalError.is(error, "model")).toBe(true);
    expect((error as Error).message).toMatch(message);
    expect((error as Error).message).toContain(path);
  });

  it("throws for a missing file and an unknown name", async () => {
    await expect(openSafetensors(join(folder, "absent"))).rejects.toThrow(/absent: got ENOENT/);
    const path = join(folder, "one.safetensors");
    await writeSafetensors(path, [floats("x", [1], 5)]);
    const file = await openSafetensors(path);
    await expect(file.read("toString")).rejects.toThrow(/got the name toString/);
    await file.close();
  });
});

function floats(name: string, shape: number[], ...values: number[]): TensorToWrite {
  return { name, shape, values: () => Float32Array.from(values) };
}

function lengthThen(length: bigint, json: string): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(length);
  return Buffer.concat([bytes, Buffer.from(json)]);
}

function file(header: object, dataBytes: number): Buffer {
  const json = JSON.stringify(header);
  return Buffer.concat([lengthThen(BigInt(Buffer.byteLength(json)), json), Buffer.alloc(dataBytes)]);
}
