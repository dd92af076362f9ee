import { thisProcess } from "@periodic-eval/core/snapshots";
import { randomUUID } from "node:crypto";

const prefix = "periodic-eval";

/** Returns a name that no adapter has had: a server's prefix cache keeps numbers by name. It names this process. */
export function newAdapterName(): string {
  const { pid, processStart, host } = thisProcess;
  return [prefix, pid, processStart ?? 0, randomUUID().slice(0, 13), host].join(".");
}

/** Whether an adapter was loaded by a process of this machine that has ended. */
export function isLeftover(name: string): boolean {
  const [, pid, start, token = "", host] = /^periodic-eval\.(\d+)\.(\w+)\.([\w-]+)\.(.+)$/.exec(name) ?? [];
  if (pid === undefined || host !== thisProcess.host) return false;
  if (Number(pid) === thisProcess.pid) return start !== (thisProcess.processStart ?? "0");
  const processStart = start === undefined || start === "0" ? null : start;
  return !thisProcess.isAlive({ pid: Number(pid), host, process_start: processStart, token });
}
