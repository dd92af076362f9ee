import { process } from "#platform";

/**
 * Whether a process with this id runs on this machine. A file that names the caller's own id may come from an earlier process: in a
 * container, ids repeat. Callers must check for that themselves.
 */
export function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // EPERM: the process belongs to another user.
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}
