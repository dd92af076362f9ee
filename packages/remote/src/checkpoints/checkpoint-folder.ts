import { open, readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { isRecord } from "@periodic-eval/core/internal";
import { readTrainerState, type TrainerState } from "./trainer-state.ts";

/** A checkpoint's folder as it is now. */
export interface CheckpointFolder {
  readonly kind: "full" | "adapter";
  /** Null if the trainer has written no `trainer_state.json`. */
  readonly state: TrainerState | null;
  /** Names, sizes and times of the files that are read: a folder that is written or deleted has another one. */
  readonly signature: string;
}

/**
 * Reads a checkpoint's folder. Returns null while files are missing or shorter than they will be: a configuration, a
 * `trainer_state.json` that does not parse, weights, a safetensors file that the index names or whose header describes more
 * bytes.
 */
export async function readCheckpointFolder(path: string): Promise<CheckpointFolder | null> {
  try {
    const signature = await signatureOf(path);
    const names = (await readdir(path, { withFileTypes: true })).flatMap((file) =>
      file.isDirectory() ? [] : [file.name],
    );
    // A trainer may save the base model's config.json beside an adapter.
    const kind = names.includes("adapter_config.json") ? "adapter" : "full";
    if (kind === "full" && !names.includes("config.json")) return null;
    const state = names.includes("trainer_state.json")
      ? readTrainerState(await readFile(join(path, "trainer_state.json"), "utf8"))
      : null;
    const indices = names.filter((name) => /\.(safetensors|bin)\.index\.json$/.test(name));
    const indexed = await Promise.all(indices.map((name) => shardsOf(join(path, name))));
    const weights = new Set([...indexed.flat(), ...names.filter((name) => weightFile.test(name))]);
    const isShard = (name: string) => /-\d+-of-\d+\.\w+$/.test(name);
    if (weights.size === 0 || (indices.length === 0 && [...weights].some(isShard))) return null;
    for (const name of weights)
      if (
        name.endsWith(".safetensors") ? !(await isWholeSafetensors(join(path, name))) : !names.includes(name)
      )
        return null;
    return (await signatureOf(path)) === signature ? { kind, state, signature } : null;
  } catch {
    return null;
  }
}

/** Pickled weights are refused when they are opened, with the remedy. */
const weightFile = /\.safetensors$|^(pytorch_model|adapter_model)[\w.-]*\.bin$/;

/** Files that are read when a checkpoint is measured. The trainer may write others, or its state, at any time. */
const isRead = (name: string): boolean =>
  /\.(safetensors|bin|json|jinja|model|txt)$/.test(name) && name !== "trainer_state.json";

async function signatureOf(path: string): Promise<string> {
  const files = (await readdir(path)).filter(isRead).toSorted();
  const stats = await Promise.all(
    files.map(async (name) => {
      const { size, mtimeMs, ino } = await stat(join(path, name));
      return [name, size, mtimeMs, ino];
    }),
  );
  return JSON.stringify(stats);
}

/** Returns whether a checkpoint has other files than when it had a signature; false for one that was deleted. */
export async function hasChanged(path: string, signature: string): Promise<boolean> {
  const now = await signatureOf(path).catch(() => null);
  return now !== null && now !== "[]" && now !== signature;
}

const blockBytes = 4096;
/** Blocks of a file that are looked at. */
const blocksPerFile = 256;
/** The last bytes of a file, which programs write last. */
const endBytes = 8;

/**
 * Returns whether a file that is read ends in zeros or has a block of them: a program that copies it may have reserved its
 * size, which it fills later. Weights may have such blocks. Looks at 256 blocks of each file.
 */
export async function hasZeros(path: string): Promise<boolean> {
  for (const name of (await readdir(path)).filter(isRead))
    if (await fileHasZeros(join(path, name))) return true;
  return false;
}

async function fileHasZeros(path: string): Promise<boolean> {
  const file = await open(path, "r");
  try {
    const { size } = await file.stat();
    const isZero = async (at: number, length: number) => {
      const { buffer } = await file.read(Buffer.alloc(length), 0, length, at);
      return buffer.every((byte) => byte === 0);
    };
    if (size < endBytes) return false;
    if (await isZero(size - endBytes, endBytes)) return true;
    const step = Math.max(blockBytes, Math.floor(size / blocksPerFile));
    for (let at = 0; at + blockBytes <= size; at += step) if (await isZero(at, blockBytes)) return true;
    return false;
  } finally {
    await file.close();
  }
}

async function shardsOf(index: string): Promise<readonly string[]> {
  const { weight_map: files } = JSON.parse(await readFile(index, "utf8")) as {
    readonly weight_map?: unknown;
  };
  return Object.values(files as Readonly<Record<string, string>>);
}

/** Headers have the same limit in the reference implementation. */
const maxHeaderBytes = 100_000_000;

/**
 * Whether a safetensors file is as long as its header says: 8 bytes of length, the header, the data of all tensors. Unlike
 * `readSafetensorsHeader`, it accepts types that cannot be read here: such a file is complete, and the error comes when it is opened.
 */
async function isWholeSafetensors(path: string): Promise<boolean> {
  const file = await open(path, "r");
  try {
    const { size } = await file.stat();
    const length = Buffer.alloc(8);
    if ((await file.read(length, 0, 8, 0)).bytesRead < 8) return false;
    const headerBytes = Number(length.readBigUInt64LE());
    if (headerBytes > maxHeaderBytes || 8 + headerBytes > size) return false;
    const header = Buffer.alloc(headerBytes);
    if ((await file.read(header, 0, headerBytes, 8)).bytesRead < headerBytes) return false;
    const ends = Object.values(JSON.parse(header.toString("utf8")) as object).map((tensor: unknown) =>
      isRecord(tensor) && Array.isArray(tensor["data_offsets"]) ? Number(tensor["data_offsets"][1]) : 0,
    );
    return size >= 8 + headerBytes + ends.reduce((most, end) => Math.max(most, end), 0);
  } finally {
    await file.close();
  }
}
