import { open, readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { isRead, inspectCheckpointFolder, type CheckpointFolder } from "./checkpoint-folder.ts";

const blockBytes = 4096;
/** Programs that copy a file in parts use parts of at least 5 MiB (S3), mostly 8 MiB or more. */
const mostBetweenBlocks = 4 * 1024 * 1024;
/** Blocks of a short file that are looked at. */
const blocksPerFile = 256;
/** The last bytes of a file, which programs write last. */
const endBytes = 8;

/**
 * Returns why a complete checkpoint may still be copied; null if nothing suggests it.
 *
 * - A file that is read ends in zeros or has a block of them: a program may have reserved its size, which it fills later. Weights
 *   may have such blocks. Looks at one block in 4 MiB, and at 256 of a shorter file.
 * - A file has a name that programs use until a copy is whole.
 */
async function signOfCopying(path: string): Promise<string | null> {
  const names = await readdir(path);
  const temporary = names.find((name) => !isRead(name) && temporaryName.test(name));
  if (temporary !== undefined) return `the temporary file ${temporary}`;
  for (const name of names.filter(isRead)) if (await fileHasZeros(join(path, name))) return "blocks of zeros";
  return null;
}

/** Such as `.config.json.Xy12ab` (rsync), `config.json.1a2b3c4d` (aws s3), `config.json.1a2b3c4d.partial` (rclone). */
const temporaryName =
  /\.(safetensors|bin|json|jinja|model|txt|pt|pth)[._-]\w+|\.(part|partial|tmp|temp|incomplete)$/i;

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
    const step = Math.min(mostBetweenBlocks, Math.max(blockBytes, Math.floor(size / blocksPerFile)));
    for (let at = 0; at + blockBytes <= size; at += step) if (await isZero(at, blockBytes)) return true;
    return false;
  } finally {
    await file.close();
  }
}

/** The state of a checkpoint after some reads of its folder. */
export type Finding =
  | { readonly status: "complete"; readonly folder: CheckpointFolder }
  | {
      /** `settling`: not observed for long enough; `changing`: it changed since the read before. */
      readonly status: "settling" | "changing" | "incomplete";
      /** Why it is not complete. */
      readonly lacks: string;
      /** Seconds since its last change. */
      readonly seconds: number;
    };

interface Observation {
  readonly activity: string;
  /** In milliseconds. */
  readonly since: number;
  /** The longest time between two changes, in seconds. */
  readonly longestPause: number;
  inspected: CheckpointFolder | string | null;
  /** Null if nothing suggests that it is still copied; undefined until the files were looked at. */
  sign: string | null | undefined;
}

interface ObserverOptions {
  /** Seconds for which a checkpoint must not change. */
  readonly quietSeconds: number;
  /** Whether a checkpoint without `trainer_state.json` is incomplete. */
  readonly needsState: boolean;
  readonly log: (message: string) => void;
}

/** Seconds for which a checkpoint that looks as if it is still copied must not change. */
const copyingSeconds = 30;

/**
 * Decides by repeated reads which checkpoints are complete: every file is there, and nothing in the checkpoint's folder has changed
 * for twice the longest earlier pause between two changes, within limits. Other files of the trainer in the folder count, too.
 */
export class CheckpointObserver {
  readonly #options: ObserverOptions;
  /** By path. */
  readonly #observations = new Map<string, Observation>();

  constructor(options: ObserverOptions) {
    this.#options = options;
  }

  /**
   * @param root The checkpoint's folder, which contains `path`.
   * @param now In milliseconds.
   */
  async observe(path: string, root: string, now: number): Promise<Finding> {
    const activity = await activityOf(root);
    const known = this.#observations.get(path);
    if (known?.activity !== activity) {
      const longestPause = known === undefined ? 0 : Math.max(known.longestPause, (now - known.since) / 1000);
      this.#observations.set(path, { activity, since: now, longestPause, inspected: null, sign: undefined });
      return {
        status: known === undefined ? "settling" : "changing",
        lacks: "it is being written",
        seconds: 0,
      };
    }
    const { quietSeconds, needsState, log } = this.#options;
    const seconds = (now - known.since) / 1000;
    // A slow network pauses between two files.
    const needed = Math.min(copyingSeconds, Math.max(quietSeconds, 2 * known.longestPause));
    // Timers may fire a little early.
    if (seconds < needed - 0.005) return { status: "settling", lacks: "it is being written", seconds };
    const inspected = (known.inspected ??= await inspectCheckpointFolder(path));
    if (typeof inspected === "string") return { status: "incomplete", lacks: inspected, seconds };
    if (needsState && inspected.state === null)
      return { status: "incomplete", lacks: "trainer_state.json is missing", seconds };
    if (seconds >= copyingSeconds) return { status: "complete", folder: inspected };
    if (known.sign === undefined) {
      known.sign = await signOfCopying(path).catch(() => "files that are deleted");
      if (known.sign !== null)
        log(
          `${path} has ${known.sign}, as if it is still copied: it is read if it does not change for ${copyingSeconds} s`,
        );
    }
    return known.sign === null
      ? { status: "complete", folder: inspected }
      : { status: "settling", lacks: `it has ${known.sign}`, seconds };
  }
}

/**
 * Names, sizes and times of all files of a checkpoint. The time of the last change (ctime) shows writes of programs that keep the
 * time of the source.
 */
async function activityOf(root: string): Promise<string> {
  const names = await readdir(root, { recursive: true }).catch((): string[] => []);
  const stats = await Promise.all(
    names.toSorted().map(async (name) => {
      const file = await stat(join(root, name)).catch(() => null);
      return [name, file && [file.size, file.mtimeMs, file.ctimeMs, file.ino]];
    }),
  );
  return JSON.stringify(stats);
}
