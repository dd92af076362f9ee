import { open, readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { isRecord } from "@periodic-eval/core/internal";
import { readTrainerState, type TrainerState } from "./trainer-state.ts";

/** A checkpoint's folder as it is now. */
export interface CheckpointFolder {
  readonly kind: "full" | "adapter";
  /** Null if the trainer has written no `trainer_state.json`. */
  readonly state: TrainerState | null;
  /** Names, sizes and times of its files: a folder that is written or deleted has another one. */
  readonly signature: string;
}

/**
 * Reads a checkpoint's folder. Returns null while files are missing or shorter than they will be: a configuration, a
 * `trainer_state.json` that does not parse, a safetensors file that the index names or whose header describes more bytes.
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
    const indexed = await Promise.all(
      names
        .filter((name) => name.endsWith(".safetensors.index.json"))
        .map((name) => shardsOf(join(path, name))),
    );
    const weights = names.filter((name) => name.endsWith(".safetensors"));
    for (const name of new Set([...indexed.flat(), ...weights]))
      if (!(await isWholeSafetensors(join(path, name)))) return null;
    return (await signatureOf(path)) === signature ? { kind, state, signature } : null;
  } catch {
    return null;
  }
}

async function signatureOf(path: string): Promise<string> {
  const files = (await readdir(path)).toSorted();
  const stats = await Promise.all(
    files.map(async (name) => {
      const { size, mtimeMs, ino } = await stat(join(path, name));
      return [name, size, mtimeMs, ino];
    }),
  );
  return JSON.stringify(stats);
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
