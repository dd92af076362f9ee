import { PeriodicEvalError, type Awaitable } from "@periodic-eval/contracts";
import { writeFileAtomic } from "@periodic-eval/store";
import { bytesPerElement, type DType, narrowToBf16, narrowToF16 } from "./dtypes.ts";

export interface TensorToWrite {
  readonly name: string;
  readonly shape: readonly number[];
  readonly dtype?: "F32" | "BF16" | "F16" | "I32";
  /** Returns the values in row-major order. Called right before writing, so that only one tensor is in memory at a time. */
  values(): Awaitable<Float32Array | Int32Array>;
}

export interface WriteOptions {
  /** The type of tensors without a `dtype`. Default: `"F32"`. Narrowing rounds to nearest, ties to even. */
  readonly dtype?: "F32" | "BF16" | "F16";
  /** Strings by name. Default: `{ format: "pt" }`, which transformers expects. */
  readonly metadata?: Readonly<Record<string, string>>;
}

/**
 * Writes a file atomically: a reader sees the old file or the new one, even if the process dies. Orders tensors like the reference
 * implementation, by element size (largest first) and then by name, so equal tensors give equal bytes.
 *
 * @throws PeriodicEvalError `store` if the file cannot be written; `model` if a tensor has a repeated name, or values that do not
 *   match its shape or type. The old file is then unchanged.
 */
export async function writeSafetensors(
  path: string,
  tensors: readonly TensorToWrite[],
  { dtype = "F32", metadata = { format: "pt" } }: WriteOptions = {},
): Promise<void> {
  const layout = planLayout(path, tensors, dtype);
  await writeFileAtomic(path, async (file) => {
    await file.write(headerBytes(layout, metadata));
    for (const tensor of layout) await file.write(await encodedValues(path, tensor));
  });
}

/** A tensor with its byte range in the data. */
interface Placed extends TensorToWrite {
  readonly dtype: NonNullable<TensorToWrite["dtype"]>;
  readonly begin: number;
  readonly end: number;
}

function planLayout(
  path: string,
  tensors: readonly TensorToWrite[],
  dtype: "F32" | "BF16" | "F16",
): Placed[] {
  const names = new Set(["__metadata__"]);
  for (const { name } of tensors) {
    if (names.has(name)) throw wrongTensor(path, name, "a second tensor with this name", "unique names");
    names.add(name);
  }
  let end = 0;
  return tensors
    .map((tensor) => ({ ...tensor, dtype: tensor.dtype ?? dtype }))
    .sort((a, b) => bytesPerElement(b.dtype) - bytesPerElement(a.dtype) || (a.name < b.name ? -1 : 1))
    .map((tensor) => {
      const begin = end;
      end += sizeOf(tensor.shape) * bytesPerElement(tensor.dtype);
      return { ...tensor, begin, end };
    });
}

function headerBytes(layout: readonly Placed[], metadata: Readonly<Record<string, string>>): Uint8Array {
  const entries = layout.map(({ name, dtype, shape, begin, end }): [string, unknown] => [
    name,
    { dtype: dtype satisfies DType, shape, data_offsets: [begin, end] },
  ]);
  const json = new TextEncoder().encode(
    JSON.stringify(Object.fromEntries([["__metadata__", metadata], ...entries])),
  );
  // Pads with spaces to a multiple of 8, which aligns the data.
  const bytes = new Uint8Array(8 + Math.ceil(json.length / 8) * 8).fill(0x20);
  new DataView(bytes.buffer).setBigUint64(0, BigInt(bytes.length - 8), true);
  bytes.set(json, 8);
  return bytes;
}

async function encodedValues(path: string, { name, shape, dtype, values }: Placed): Promise<Uint8Array> {
  const array = await values();
  if (array.length !== sizeOf(shape)) {
    throw wrongTensor(
      path,
      name,
      `${array.length} values`,
      `${sizeOf(shape)} values for [${shape.join(", ")}]`,
    );
  }
  if (array instanceof Int32Array !== (dtype === "I32")) {
    throw wrongTensor(path, name, array.constructor.name, `values for ${dtype}`);
  }
  if (dtype === "BF16") return bytesOf(narrowToBf16(array as Float32Array));
  if (dtype === "F16") return bytesOf(narrowToF16(array as Float32Array));
  return bytesOf(array);
}

function bytesOf(array: Float32Array | Int32Array | Uint16Array): Uint8Array {
  return new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
}

function sizeOf(shape: readonly number[]): number {
  return shape.reduce((product, size) => product * size, 1);
}

function wrongTensor(path: string, name: string, got: string, expected: string): PeriodicEvalError {
  const fix = "Give each tensor a unique name, and values that match its shape and type.";
  return new PeriodicEvalError({ code: "model", where: `${path}, tensor ${name}`, got, expected, fix });
}
