import {
  appendFileSync,
  closeSync,
  existsSync,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  mkdirSync,
  openSync,
} from "node:fs";
import { dirname } from "node:path";
import { nodeFiles, storeError, writeWhole } from "@periodic-eval/core/snapshots";

/** A file of lines that grows while training runs. */
export interface LineFile {
  /** Written when it returns, so that a killed process loses none. */
  append(lines: readonly string[]): void;
  /** Drops the lines of which this holds; the file is replaced whole, and left alone where there is none. */
  drop(isStale: (line: string) => boolean): Promise<void>;
  /** A later `append` opens the file again. */
  close(): void;
}

/**
 * Opens nothing before the first line. What a crash left of a last line goes with what is dropped.
 *
 * @param header the first line of a new file.
 * @param end of every line.
 * @throws PeriodicEvalError `store` where the file cannot be written.
 */
export function lineFile(
  path: string,
  { header, end = "\n" }: { header?: string; end?: string } = {},
): LineFile {
  let file: number | null = null;

  function open(): number {
    mkdirSync(dirname(path), { recursive: true });
    const opened = openSync(path, "a+");
    try {
      if (fstatSync(opened).size === 0 && header !== undefined) appendWhole(opened, header + end);
    } catch (error) {
      closeSync(opened);
      throw error;
    }
    return opened;
  }

  function close(): void {
    if (file === null) return;
    fsyncSync(file);
    closeSync(file);
    file = null;
  }

  return {
    append(lines) {
      if (lines.length === 0) return;
      try {
        file ??= open();
        appendWhole(file, lines.map((line) => line + end).join(""));
      } catch (error) {
        throw storeError(path, error);
      }
    },
    async drop(isStale) {
      close();
      if (!existsSync(path)) return;
      try {
        const text = await nodeFiles.read(path);
        // The last piece is empty, or what a crash left of a line. Editors and Git change how lines end.
        const lines = text.split(/\r?\n/).slice(0, -1);
        const kept = lines.filter((line) => line === header || !isStale(line)).map((line) => line + end);
        if (kept.join("") !== text) await writeWhole(path, kept.join(""));
      } catch (error) {
        throw storeError(path, error);
      }
    },
    close,
  };
}

/** Of what a full disk took a part of, that part is taken back: the next line would go on in the middle of it. */
function appendWhole(file: number, text: string): void {
  const { size } = fstatSync(file);
  try {
    appendFileSync(file, text);
  } catch (error) {
    ftruncateSync(file, size);
    throw error;
  }
}
