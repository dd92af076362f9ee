import { readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { PeriodicEvalError } from "@periodic-eval/core";
import { openSafetensors, type SafetensorsFile, type TensorInfo } from "@periodic-eval/safetensors";

/** The tensors of a checkpoint folder, whatever files they lie in. */
export interface CheckpointTensors {
  readonly tensors: ReadonlyMap<string, TensorInfo>;
  /** As float32. */
  read(name: string): Promise<Float32Array>;
  close(): Promise<void>;
}

/**
 * Opens `model.safetensors`, or the shards that `model.safetensors.index.json` lists. Throws a `model` error where there
 * is neither, a shard is missing or not a plain file name, or the index and the shards disagree.
 */
export async function openTensors(folder: string): Promise<CheckpointTensors> {
  const index = await readIndex(join(folder, indexName));
  const files: SafetensorsFile[] = [];
  const fileOf = new Map<string, SafetensorsFile>();
  const close = async () => {
    for (const file of files) await file.close();
  };
  try {
    const names = index === null ? [singleName] : [...new Set(Object.values(index))].sort();
    for (const name of names) files.push(await openSafetensors(join(folder, name)));
    for (const file of files) for (const name of file.tensors.keys()) claim(fileOf, name, file);
    if (index !== null) checkIndex(index, fileOf, folder);
  } catch (error) {
    await close();
    throw error;
  }
  return {
    tensors: new Map([...fileOf].map(([name, file]) => [name, file.tensors.get(name)!])),
    async read(name) {
      const file = fileOf.get(name)!;
      const values = await file.read(name);
      if (values instanceof Float32Array) return values;
      if (values instanceof Float64Array) return Float32Array.from(values);
      throw failure(
        `${file.path}, tensor ${name}`,
        file.tensors.get(name)!.dtype,
        "F32, BF16, F16 or F64",
        unquantized,
      );
    },
    close,
  };
}

/** The file of a checkpoint in one piece. */
export const singleName = "model.safetensors";
const indexName = "model.safetensors.index.json";
const unquantized = "Use a checkpoint that is not quantized.";
const wholeCheckpoint = "Fetch the checkpoint anew: its files do not belong together.";

/**
 * Removes an index and the shards it lists, so that the file in one piece is what the folder holds. Of an index that
 * cannot be trusted only the index is removed: what it names may be anybody's.
 */
export async function removeShards(folder: string): Promise<void> {
  const path = join(folder, indexName);
  const index = await readIndex(path).catch((error: unknown) => {
    if (PeriodicEvalError.is(error)) return {};
    throw error;
  });
  if (index === null) return;
  // The index first: where this is cut off, no reader looks for a shard that is gone.
  await rm(path);
  for (const name of new Set(Object.values(index))) {
    if (name !== singleName) await rm(join(folder, name), { force: true });
  }
}

async function readIndex(path: string): Promise<Readonly<Record<string, string>> | null> {
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw failure(path, String(error), "a readable file", "Check its permissions.", error);
  }
  const map = parseIndex(text, path);
  for (const [tensor, file] of Object.entries(map)) {
    // A path in an index could name any file of the machine.
    if (typeof file !== "string" || !/^[\w-][\w.-]*\.safetensors$/.test(file)) {
      throw failure(
        `${path}, ${tensor}`,
        JSON.stringify(file),
        "a plain name that ends in .safetensors",
        wholeCheckpoint,
      );
    }
  }
  return map as Record<string, string>;
}

function parseIndex(text: string, path: string): Record<string, unknown> {
  let map: unknown;
  try {
    map = (JSON.parse(text) as { weight_map?: unknown } | null)?.weight_map;
  } catch (cause) {
    throw failure(path, "no JSON", "an index of shards", wholeCheckpoint, cause);
  }
  if (typeof map === "object" && map !== null && !Array.isArray(map)) return map as Record<string, unknown>;
  throw failure(path, "no weight_map", "an object weight_map from tensor to file", wholeCheckpoint);
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

function checkIndex(
  index: Readonly<Record<string, string>>,
  fileOf: ReadonlyMap<string, SafetensorsFile>,
  folder: string,
): void {
  for (const [tensor, name] of Object.entries(index)) {
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

export function failure(
  where: string,
  got: string,
  expected: string,
  fix: string,
  cause?: unknown,
): PeriodicEvalError {
  return new PeriodicEvalError({ code: "model", where, got, expected, fix, cause });
}
