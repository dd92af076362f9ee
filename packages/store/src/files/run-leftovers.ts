import { join, process, readdir, rm, stat } from "#platform";
import { isRunning } from "../process/is-running.ts";
import { removeLeftovers } from "./whole-folder.ts";

/** The name of a file that is being written: the process and the number of the write in it. */
const temporaryFile = /^\..+\.(\d+)\.\d+\.tmp$/;

/** The folders of a run in which a training, its judges and its loggers write. All others belong to the user. */
const writtenFolders = [
  "checkpoints",
  "saved",
  "bad_rows",
  "reference",
  "verdicts",
  "loggers",
  "exports",
  "watch",
];

/**
 * Removes the leftovers of interrupted writes and removals in a run's folder, which this process has locked. Leaves temporary
 * files of other processes that run, such as a `rejudge`, and `periodic_eval`, which its store repairs.
 */
export async function removeRunLeftovers(runDir: string): Promise<void> {
  const list = (folder: string) => readdir(folder, { withFileTypes: true }).catch(() => []);
  const folders = [runDir];
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
    if (folder !== runDir) await removeLeftovers(folder);
    for (const entry of await list(folder)) {
      const path = join(folder, entry.name);
      const writer = temporaryFile.exec(entry.name)?.[1];
      if (entry.isDirectory() && (folder !== runDir || writtenFolders.includes(entry.name)))
        folders.push(path);
      else if (writer !== undefined && !(await isBeingWritten(path, Number(writer))))
        await rm(path, { force: true }).catch(() => undefined); // nobody reads it
    }
  }
}

async function isBeingWritten(path: string, writer: number): Promise<boolean> {
  // In a container, every process can have the number of this one.
  if (writer === process.pid)
    return stat(path).then(
      ({ mtimeMs }) => mtimeMs >= performance.timeOrigin,
      () => true,
    );
  return isRunning(writer);
}
