// Vitest's global set-up: tests get a temporary folder of this run (TMPDIR, or TEMP on Windows), which is removed at the end. Whatever a test
// left in it is listed, and fails the run: users' machines have no such set-up.
import { accessSync, constants, mkdtempSync, readdirSync, rmSync, statfsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Entries that tools keep in the temporary folder: tsx's cache, torch's compiled code, Chromium's sockets. */
const ofTools = /^(tsx-|torchinductor_|node-compile-cache|\.org\.chromium|org\.chromium|playwright)/;

/** The variable that `os.tmpdir()` reads. */
const variable = process.platform === "win32" ? "TEMP" : "TMPDIR";

/**
 * Returns the folder in which the run's folder is made: Linux's file system in memory if it has at least 4 GiB free. Tests of
 * snapshots and checkpoints sync thousands of files, each of which waits for a disk.
 */
function parentFolder() {
  if (process.env[variable] !== undefined || process.platform !== "linux") return tmpdir();
  try {
    accessSync("/dev/shm", constants.W_OK | constants.X_OK);
    const { bavail, bsize } = statfsSync("/dev/shm");
    return bavail * bsize >= 4 * 2 ** 30 ? "/dev/shm" : tmpdir();
  } catch {
    return tmpdir();
  }
}

export function setup() {
  const before = process.env[variable];
  // Vitest calls this once per project; one folder serves all.
  if (process.env.PERIODIC_EVAL_TEST_FOLDER !== undefined) return undefined;
  // A short name: Chromium's socket path must fit into 108 bytes.
  const folder = mkdtempSync(join(parentFolder(), "pe-"));
  process.env[variable] = folder;
  process.env.PERIODIC_EVAL_TEST_FOLDER = folder;
  // If a worker process dies, vitest can end early, without a summary and with exit code 0.
  const onEarlyEnd = () => {
    rmSync(folder, { recursive: true, force: true });
    console.error("the tests ended early: a process that ran them died");
    process.exitCode ||= 1;
  };
  process.on("exit", onEarlyEnd);
  return () => {
    process.off("exit", onEarlyEnd);
    const left = readdirSync(folder, { recursive: true }).filter((path) => !ofTools.test(path));
    rmSync(folder, { recursive: true, force: true });
    delete process.env.PERIODIC_EVAL_TEST_FOLDER;
    if (before === undefined) delete process.env[variable];
    else process.env[variable] = before;
    if (left.length === 0) return;
    console.error(`tests left ${left.length} files or folders behind: ${left.slice(0, 20).join(", ")}`);
    process.exitCode = 1;
  };
}
