import {
  appendFileSync,
  closeSync,
  existsSync,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  openSync,
  readSync,
} from "node:fs";
import { dirname } from "node:path";
import { PeriodicEvalError } from "@periodic-eval/core";
import { quoteValue } from "@periodic-eval/contracts/options";
import {
  checkFolder,
  readIfPresent,
  storeError,
  writeFileAtomic,
  makeFolderSync,
} from "@periodic-eval/store";

/** A file of lines that grows while training runs. */
export interface LineFile {
  /** Writes lines synchronously, so that a killed process loses none. */
  append(lines: readonly string[]): void;
  lines(): Promise<readonly string[]>;
  /** Throws if the first line shows that the file has another format. */
  checkFormat(): void;
  /**
   * Drops the lines for which `shouldDrop` is true, and a last line that a crash cut off; replaces the file atomically if there are
   * any.
   */
  drop(shouldDrop: (line: string) => boolean): Promise<void>;
  /** Makes the lines so far durable: until then a crash of the machine, not of the process, may lose them. */
  sync(): void;
  /** Syncs and closes the file. A later `append` reopens it. */
  close(): void;
}

/** The format of a file of lines. */
export interface LineKind {
  /** The first line of a new file. */
  readonly header?: string;
  /** Line end. Default: `\n`. */
  readonly end?: string;
  /** Describes the format in errors: `a JSONL file of this logger`. */
  readonly description: string;
  /** Whether a file has this format. `firstLine` has at most 4096 characters and may be cut off by a crash. */
  hasThisFormat(firstLine: string): boolean;
  /** Whether a last line without a line end was cut off by a crash. */
  isCutOff(piece: string): boolean;
}

/**
 * Returns a file of lines. It is opened for writing when the first line is appended.
 *
 * @throws PeriodicEvalError `config` if the file has another format; `store` if it cannot be written.
 */
export function lineFile(path: string, kind: LineKind): LineFile {
  const { header, end = "\n" } = kind;
  let file: number | null = null;

  function open(): number {
    makeFolderSync(dirname(path));
    const opened = openSync(path, "a+");
    try {
      if (fstatSync(opened).size === 0 && header !== undefined) appendWhole(opened, header + end);
    } catch (error) {
      closeSync(opened);
      throw error;
    }
    return opened;
  }

  function sync(): void {
    try {
      if (file !== null) fsyncSync(file);
    } catch (error) {
      throw storeError(path, error);
    }
  }

  function close(): void {
    if (file === null) return;
    try {
      sync();
    } finally {
      closeSync(file);
      file = null;
    }
  }

  return {
    checkFormat: () => checkFormat(path, kind),
    lines: async () => (await readPieces(path, kind)).lines,
    append(lines) {
      if (lines.length === 0) return;
      try {
        checkFolder(path);
        file ??= open();
        appendWhole(file, lines.map((line) => line + end).join(""));
      } catch (error) {
        throw storeError(path, error);
      }
    },
    async drop(shouldDrop) {
      close();
      if (!existsSync(path)) return;
      try {
        const { text, lines } = await readPieces(path, kind);
        const rest = lines.filter((line) => line === header || !shouldDrop(line)).map((line) => line + end);
        if (rest.join("") !== text) await writeFileAtomic(path, rest.join(""));
      } catch (error) {
        throw storeError(path, error);
      }
    },
    sync,
    close,
  };
}

function checkFormat(path: string, kind: LineKind): void {
  const [start = ""] = startOf(path).split(/\r?\n/);
  if (start === "" || kind.hasThisFormat(start)) return;
  throw new PeriodicEvalError({
    code: "config",
    where: path,
    got: `a file that begins with ${quoteValue(start)}`,
    expected: `${kind.description}, or no file`,
    fix: "Choose another path, or move the file away: this logger would append to it and drop lines of repeated steps.",
  });
}

/** Returns complete lines, without a last line that was cut off. Accepts any line end, because editors and Git change them. */
async function readPieces(path: string, kind: LineKind): Promise<{ text: string; lines: readonly string[] }> {
  const text = (await readIfPresent(path)) ?? "";
  const lines = text.split(/\r?\n/);
  const last = lines.at(-1)!;
  return { text, lines: last === "" || kind.isCutOff(last) ? lines.slice(0, -1) : lines };
}

/** Returns the first bytes of a file, or an empty string if it cannot be read: writing will report the error. */
function startOf(path: string): string {
  let file: number | null = null;
  try {
    file = openSync(path, "r");
    const bytes = Buffer.alloc(4096);
    return bytes.toString("utf8", 0, readSync(file, bytes));
  } catch {
    return "";
  } finally {
    if (file !== null) closeSync(file);
  }
}

/** Appends a string completely or not at all: removes the part that a full disk accepted, because the next line would continue it. */
function appendWhole(file: number, text: string): void {
  const { size } = fstatSync(file);
  try {
    appendFileSync(file, text);
  } catch (error) {
    ftruncateSync(file, size);
    throw error;
  }
}
