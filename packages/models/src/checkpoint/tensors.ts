import { readdir } from "node:fs/promises";
import { join } from "node:path";
import {
  openSafetensors,
  type SafetensorsFile,
  type TensorInfo,
  type ValueRange,
} from "@periodic-eval/safetensors";
import { failure } from "../folder/failure.ts";
import { pickled } from "../folder/pickled.ts";
import { pathInFolder } from "../folder/read-file.ts";
import {
  indexName,
  readShardIndex,
  shardsOf,
  singleName,
  wholeCheckpoint,
  type ShardIndex,
} from "../folder/shard-index.ts";

/** The tensors of a checkpoint folder, whatever files they lie in. */
export interface CheckpointTensors {
  readonly tensors: ReadonlyMap<string, TensorInfo>;
  /** As float32; all, or a range of them. */
  read(name: string, range?: ValueRange): Promise<Float32Array>;
  close(): Promise<void>;
}

/**
 * Opens `model.safetensors`, or where there is none the shards that `model.safetensors.index.json` lists, in the order in
 * which transformers looks for them. Throws a `model` error where there is neither, a shard is missing or not a plain file name, or the index and the shards disagree.
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
    if (index === null) refusePickled(folder, names);
    for (const name of index === null ? [singleName] : shardsOf(index))
      files.push(await openSafetensors(await pathInFolder(folder, name)));
    for (const file of files) for (const name of file.tensors.keys()) claim(fileOf, name, file);
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

/** A tensor of a file as float32, or a range of it. Throws a `model` error where it holds no floats. */
export async function readFloats(
  file: SafetensorsFile,
  name: string,
  range?: ValueRange,
): Promise<Float32Array> {
  const values = await file.read(name, range);
  if (values instanceof Float32Array) return values;
  if (values instanceof Float64Array) return Float32Array.from(values);
  const { dtype } = file.tensors.get(name)!;
  throw failure(`${file.path}, tensor ${name}`, dtype, "F32, BF16, F16 or F64", unquantized);
}

const unquantized = "Use a checkpoint that is not quantized.";

function refusePickled(folder: string, names: readonly string[]): void {
  const refused = names.includes(singleName) ? null : pickled(folder, names);
  if (refused !== null) throw refused;
}

function claim(fileOf: Map<string, SafetensorsFile>, tensor: string, file: SafetensorsFile): void {
  const other = fileOf.get(tensor);
  if (other !== undefined) {
    throw failure(
      `${file.path}, tensor ${tensor}`,
      `also one in ${other.path}`,
      "each tensor once",
      wholeCheckpoint,
    );
  }
  fileOf.set(tensor, file);
}

function checkIndex(index: ShardIndex, fileOf: ReadonlyMap<string, SafetensorsFile>, folder: string): void {
  for (const [tensor, name] of index) {
    const path = fileOf.get(tensor)?.path;
    if (path === join(folder, name)) continue;
    throw failure(
      `${join(folder, indexName)}, ${tensor}`,
      name,
      path ?? "a shard that holds it",
      wholeCheckpoint,
    );
  }
}
