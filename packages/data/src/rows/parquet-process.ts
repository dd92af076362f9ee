// `read-parquet.ts` reads the rows, in another process.
import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { dataError } from "@periodic-eval/contracts/options";
import { startTimeout, workingSeconds, invalidUtf8 } from "@periodic-eval/store";
import type { ParquetReply, ParquetRequest } from "./read-parquet.ts";

/** Limits of decoding a whole file. */
export interface ParquetLimits {
  readonly seconds: number;
  readonly mebibytes: number;
}

export interface ParquetOptions {
  /** Default: limits that grow with the file's size. */
  readonly limits?: ParquetLimits;
  /**
   * Columns in whose lists and structs marks stand for what JavaScript reads otherwise than Python (`markNumbers`). `"all"`: marks
   * in whole rows. Default: none.
   */
  readonly marked?: readonly string[] | "all";
}

export interface ParquetRow {
  /** Integers of 64 bits are numbers where these are exact, else bigints. */
  readonly value: Record<string, unknown>;
  /** Describes the first text that is not UTF-8: `"text" with bytes that are not UTF-8 (…)`; null if there is none. */
  readonly invalidText: string | null;
}

/** Starting Node on a busy machine takes seconds. */
const startSeconds = 60;

/** Some ten times what valid files take. */
function limitsFor(bytes: number): ParquetLimits {
  const mebibytes = bytes / 2 ** 20;
  return { seconds: Math.ceil(20 + mebibytes), mebibytes: Math.ceil(512 + 20 * mebibytes) };
}

/**
 * Decodes the rows of a Parquet file in order, in a process of its own: one damaged byte can make the decoder loop for ever or
 * exhaust the heap, and a full heap of a worker thread would end this process.
 *
 * @param name Names the file in errors.
 * @throws PeriodicEvalError `data` for a file that cannot be decoded within the limits; the error of a file that cannot be read.
 */
export async function* decodeParquet(
  path: string,
  name: string,
  { limits, marked = [] }: ParquetOptions = {},
): AsyncGenerator<ParquetRow, void> {
  const { seconds, mebibytes } = limits ?? limitsFor((await stat(path)).size);
  const child = startWorker(mebibytes);
  const stop = new AbortController();
  child.on("error", (error) => stop.abort(error.message));
  child.on("exit", () => stop.abort(`a file that cannot be decoded in ${mebibytes} MiB of memory`));
  const replyWithin = async (within: number, late: string): Promise<ParquetReply> => {
    const stopTimeout = startTimeout(within, () => stop.abort(late));
    try {
      const [reply] = (await once(child, "message", { signal: stop.signal })) as [ParquetReply];
      return reply;
    } catch (cause) {
      throw parquetError(name, String(stop.signal.reason ?? cause), cause);
    } finally {
      stopTimeout();
    }
  };
  try {
    await replyWithin(startSeconds, `no process to decode it within ${startSeconds} s`);
    const request: ParquetRequest = { path: resolve(path), marked };
    let left = seconds;
    while (true) {
      const asked = workingSeconds();
      child.send(request);
      const reply = await replyWithin(left, `a file that is not decoded after ${seconds} s`);
      left -= workingSeconds() - asked;
      if (reply.kind === "failed") throw parquetError(name, reply.reason);
      if (reply.kind === "ready" || reply.rows === null) return;
      for (const { value, invalid } of reply.rows) {
        const invalidText = invalid && `${JSON.stringify(invalid.name)} with ${invalidUtf8(invalid.bytes)}`;
        yield { value, invalidText };
      }
    }
  } finally {
    child.kill("SIGKILL");
  }
}

function startWorker(mebibytes: number): ChildProcess {
  // The TypeScript source starts the compiled file, which needs no loader.
  const compiled = import.meta.url.replace(/\/src\/(.*)\.ts$/, "/dist/$1.js");
  return fork(fileURLToPath(new URL("./read-parquet.js", compiled)), {
    execArgv: [`--max-old-space-size=${mebibytes}`],
    // A crash may leave a dump in its folder.
    cwd: tmpdir(),
    env: {},
    // JSON has no dates, bytes or 64-bit integers.
    serialization: "advanced",
    stdio: ["ignore", "ignore", "ignore", "ipc"],
    // A Ctrl-C in the terminal does not reach the process: a file whose process ends counts as damaged.
    detached: process.platform !== "win32",
  });
}

function parquetError(name: string, got: string, cause?: unknown) {
  const fix =
    "Check that the file is complete; pyarrow writes it again in its usual form: pyarrow.parquet.write_table(pyarrow.parquet.read_table(path), new_path).";
  return dataError(name, got, "a Parquet file", fix, cause);
}
