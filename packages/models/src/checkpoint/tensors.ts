import { join } from "@periodic-eval/store/platform";
import { readdir } from "@periodic-eval/store/browser";
import {
  openSafetensors,
  type SafetensorsFile,
  type TensorInfo,
  type ValueRange,
} from "@periodic-eval/safetensors";
import {
  rejectPickled,
  indexName,
  readShardIndex,
  refetchFix,
  shardsOf,
  singleName,
  type ShardIndex,
} from "../folder/file-names.ts";
import { modelError } from "../folder/model-error.ts";

/** The tensors of a checkpoint folder, from one file or several. */
export interface CheckpointTensors {
  readonly tensors: ReadonlyMap<string, TensorInfo>;
  /** Reads all values of a tensor, or a range of them, as float32. */
  read(name: string, range?: ValueRange): Promise<Float32Array>;
  close(): Promise<void>;
}

/**
 * Opens `model.safetensors` or, if it is missing, the shards that `model.safetensors.index.json` lists; transformers uses
 * the same order.
 *
 * @throws PeriodicEvalError `model` if neither exists, a shard is missing or not a plain file name, or the index and the
 *   shards disagree.
 */
export async function openTensors(folder: string): Promise<CheckpointTensors> {
  const names = await readdir(folder).catch((): string[] => []);
  const index = names.includes(singleName) ? null : await readShardIndex(folder);
  const files: SafetensorsFile[] = [];
  const fileOf = new Map<string, SafetensorsFile>();
  const close = async () => {
    for (const file of files) await file.close();
  };
  try {
    if (index === null) await rejectPickled(folder, names, singleName);
    for (const name of index === null ? [singleName] : shardsOf(index))
      files.push(await openSafetensors(join(folder, name)));
    for (const file of files) for (const name of file.tensors.keys()) fileOf.set(name, file);
    if (index !== null) checkIndex(index, fileOf, folder);
  } catch (error) {
    await close();
    throw error;
  }
  return {
    tensors: new Map([...fileOf].map(([name, file]) => [name, file.tensors.get(name)!])),
    read: (name, range) => readFloats(fileOf.get(name)!, name, range),
    close,
  };
}

/** Reads a tensor, or a range of it, as float32. Throws a `model` error for a tensor of integers. */
export async function readFloats(
  file: SafetensorsFile,
  name: string,
  range?: ValueRange,
): Promise<Float32Array> {
  const values = await file.read(name, range);
  if (values instanceof Float32Array) return values;
  if (values instanceof Float64Array) return Float32Array.from(values);
  const { dtype } = file.tensors.get(name)!;
  throw modelError({
    where: `${file.path}, tensor ${name}`,
    got: dtype,
    expected: "F32, BF16, F16 or F64",
    fix: "Use a checkpoint that is not quantized.",
  });
}

export const shapeText = (shape: readonly number[]): string => `[${shape.join(", ")}]`;

/**
 * Checks that every tensor exists and has its shape.
 *
 * @param where The file or folder of the tensors.
 * @throws PeriodicEvalError `model` for the first that does not.
 */
export function checkShapes(
  where: string,
  expected: readonly Pick<TensorInfo, "name" | "shape">[],
  tensors: ReadonlyMap<string, TensorInfo>,
  fix: string,
): void {
  for (const { name, shape } of expected) {
    const actual = tensors.get(name)?.shape;
    const got = actual === undefined ? "no such tensor" : shapeText(actual);
    if (got === shapeText(shape)) continue;
    throw modelError({ where: `${where}, tensor ${name}`, got, expected: shapeText(shape), fix });
  }
}

function checkIndex(index: ShardIndex, fileOf: ReadonlyMap<string, SafetensorsFile>, folder: string): void {
  for (const [tensor, name] of index) {
    const path = fileOf.get(tensor)?.path;
    if (path === join(folder, name)) continue;
    throw modelError({
      where: `${join(folder, indexName)}, ${tensor}`,
      path: ["weight_map", tensor],
      got: name,
      expected: path ?? "a shard that contains it",
      fix: refetchFix,
    });
  }
}
