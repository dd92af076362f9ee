import type { NamedWeight } from "@periodic-eval/core/tfjs";
import { openSafetensors, writeSafetensors } from "@periodic-eval/safetensors";

/** Writes live tensors as they are, in float32: what is read back is bit-identical. */
export async function writeTensors(path: string, weights: readonly NamedWeight[]): Promise<void> {
  await writeSafetensors(
    path,
    weights.map(({ name, read }) => ({
      name,
      shape: read().shape,
      values: async () => read().data<"float32">(),
    })),
    { dtype: "F32" },
  );
}

export interface StoredTensor {
  readonly shape: readonly number[];
  readonly values: Float32Array;
}

/** Every tensor of a file, by name, in float32. */
export async function readTensors(path: string): Promise<ReadonlyMap<string, StoredTensor>> {
  const file = await openSafetensors(path);
  try {
    const found = new Map<string, StoredTensor>();
    for (const { name, shape } of file.tensors.values()) {
      const values = await file.read(name);
      found.set(name, {
        shape,
        values: values instanceof Float32Array ? values : Float32Array.from(values as ArrayLike<number>),
      });
    }
    return found;
  } finally {
    await file.close();
  }
}
