import { mkdtempSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";

/** Registers work for the end of a test, or of a file: `onTestFinished` or `afterAll`. */
export type AtEnd = (work: () => Promise<void>) => void;

/** Makes a folder that is removed at the end. Concurrent tests pass their own `onTestFinished`. */
export function temporaryFolder(atEnd: AtEnd = onTestFinished): string {
  const folder = mkdtempSync(join(tmpdir(), "periodic-eval-"));
  atEnd(() => rm(folder, { recursive: true, force: true }));
  return folder;
}
