// Vitest's global set-up: tests get a temporary folder of this run (TMPDIR), which is removed at the end. Whatever a test
// left in it is listed, and fails the run: users' machines have no such set-up.
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Entries that tools keep in the temporary folder: tsx's cache, torch's compiled code, Chromium's sockets. */
const ofTools = /^(tsx-|torchinductor_|node-compile-cache|\.org\.chromium|org\.chromium|playwright)/;

export function setup() {
  const before = process.env.TMPDIR;
  const folder = mkdtempSync(join(tmpdir(), "periodic-eval-tests-"));
  process.env.TMPDIR = folder;
  return () => {
    const left = readdirSync(folder).filter((name) => !ofTools.test(name));
    rmSync(folder, { recursive: true, force: true });
    if (before === undefined) delete process.env.TMPDIR;
    else process.env.TMPDIR = before;
    if (left.length === 0) return;
    console.error(`tests left ${left.length} files or folders behind: ${left.slice(0, 20).join(", ")}`);
    process.exitCode = 1;
  };
}
