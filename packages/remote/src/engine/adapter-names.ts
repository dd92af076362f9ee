import { stateOfProcess, thisProcess } from "@periodic-eval/store";
import { randomUUID } from "node:crypto";

const prefix = "periodic-eval";

/** Returns a name that no adapter has had: a server's prefix cache keeps numbers by name. It names this process. */
export function newAdapterName(): string {
  const { pid, processStart, system } = thisProcess;
  return [prefix, pid, processStart ?? 0, randomUUID().slice(0, 13), system ?? ""].join(".");
}

/** Whether an adapter was loaded by a process of this system that has ended. */
export function isLeftover(name: string): boolean {
  const [, pid, start, system] = /^periodic-eval\.(\d+)\.(\w+)\.[\w-]+\.(.+)$/.exec(name) ?? [];
  if (pid === undefined || system !== thisProcess.system) return false;
  if (Number(pid) === thisProcess.pid) return start !== (thisProcess.processStart ?? "0");
  const processStart = start === undefined || start === "0" ? null : start;
  return stateOfProcess(Number(pid), processStart) === "ended";
}
