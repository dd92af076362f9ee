import { thisProcess, type LockHolder } from "@periodic-eval/store";

/** Returns the content of a lock file: by default of an earlier process of this system that had the id of this one, and ended. */
export function lockText(changes: Partial<LockHolder> = {}): string {
  const { pid, host, system } = thisProcess;
  const holder: LockHolder = { pid, host, process_start: null, system, token: "left", renewals: "0" };
  return JSON.stringify({ ...holder, ...changes });
}
