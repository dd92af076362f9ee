import { readFileSync } from "node:fs";

/** Returns the largest memory that a process has used so far, in bytes; 0 if the system does not report it. */
export function memoryOf(pid) {
  try {
    return 1024 * Number(/^VmHWM:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? 0);
  } catch {
    return 0;
  }
}
