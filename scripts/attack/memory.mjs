import { readFileSync } from "node:fs";

const read = (pid, file) => {
  try {
    return readFileSync(`/proc/${pid}/${file}`, "utf8");
  } catch {
    return "";
  }
};

/** Returns the largest memory that a process or one it started has used so far, in bytes; 0 if the system does not report it. */
export function memoryOf(pid) {
  const own = 1024 * Number(/^VmHWM:\s+(\d+)/m.exec(read(pid, "status"))?.[1] ?? 0);
  const children = read(pid, `task/${pid}/children`).split(" ").filter(Boolean);
  return Math.max(own, ...children.map(memoryOf));
}
