import { spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

/** A program that answers each line of JSON with one line of JSON. */
export interface Peer {
  /** Names and versions of its libraries. */
  readonly versions: string;
  ask<T>(question: object): Promise<T>;
  /** Returns its peak resident memory so far, in bytes; null without /proc. */
  peakBytes(): number | null;
  close(): void;
}

/** The interpreter of the peers in Python. */
export const peersPython = (): string => process.env["PERIODIC_EVAL_PEERS_PYTHON"] ?? "python3";

/**
 * Starts a script of this folder, in Python or for Node, and waits until it is ready. Prints a message and returns null if it cannot
 * start.
 */
export async function openPeer(script: string, args: readonly string[]): Promise<Peer | null> {
  const program = script.endsWith(".py") ? peersPython() : process.execPath;
  const child = spawn(program, [fileURLToPath(new URL(script, import.meta.url)), ...args], {
    stdio: ["pipe", "pipe", "pipe"],
    // node-llama-cpp samples the rows of a batch in several threads of libuv, which sometimes read each other's logits.
    env: { ...process.env, UV_THREADPOOL_SIZE: "1" },
  });
  const errorLines: string[] = [];
  createInterface(child.stderr).on("line", (line) => void errorLines.push(line));
  child.on("error", (error) => void errorLines.push(error.message));
  child.stdin.on("error", () => {});
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
  const answer = async () => (await lines.next()).value as string | undefined;
  const first = await answer();
  if (first === undefined) {
    const fix = script.endsWith(".py")
      ? "pip install -r benchmarks/peers/requirements.txt, and set PERIODIC_EVAL_PEERS_PYTHON to that Python"
      : "npm run llama and npm run transformers";
    const reason = errorLines.find((line) => line.includes("Error")) ?? errorLines.at(-1) ?? "no output";
    console.log(`${script}: not available (${reason}). Run ${fix}.`);
    return null;
  }
  const { ready: versions } = JSON.parse(first) as { readonly ready: string };
  console.log(versions);
  return {
    versions,
    peakBytes() {
      const file = `/proc/${child.pid}/status`;
      if (!existsSync(file)) return null;
      return 1024 * Number(/VmHWM:\s+(\d+) kB/.exec(readFileSync(file, "utf8"))![1]);
    },
    async ask<T>(question: object) {
      child.stdin.write(`${JSON.stringify(question)}\n`);
      const line = await answer();
      if (line === undefined) throw new Error(`${script} ended: ${errorLines.slice(-3).join(" ")}`);
      return JSON.parse(line) as T;
    },
    close: () => child.stdin.end(),
  };
}
