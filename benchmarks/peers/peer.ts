import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

/** A program in another language that answers each line of JSON with a line of JSON. */
export interface Peer {
  ask<T>(question: object): Promise<T>;
  close(): void;
}

/**
 * Starts a Python script of this folder and waits until it is ready. Prints a message and returns null if it cannot start.
 * The interpreter is PERIODIC_EVAL_PEERS_PYTHON, or `python3`.
 */
export async function openPeer(script: string, args: readonly string[]): Promise<Peer | null> {
  const python = process.env["PERIODIC_EVAL_PEERS_PYTHON"] ?? "python3";
  const child = spawn(python, [fileURLToPath(new URL(script, import.meta.url)), ...args], {
    stdio: ["pipe", "pipe", "pipe"],
  });
  const said: string[] = [];
  createInterface(child.stderr).on("line", (line) => void said.push(line));
  child.on("error", (error) => void said.push(error.message));
  child.stdin.on("error", () => {});
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
  const answer = async () => (await lines.next()).value as string | undefined;
  const first = await answer();
  if (first === undefined) {
    console.log(
      `${script}: not here (${said.at(-1) ?? "no output"}). pip install -r benchmarks/peers/requirements.txt, and name that Python in PERIODIC_EVAL_PEERS_PYTHON.`,
    );
    return null;
  }
  console.log((JSON.parse(first) as { ready: string }).ready);
  return {
    async ask<T>(question: object) {
      child.stdin.write(`${JSON.stringify(question)}\n`);
      const line = await answer();
      if (line === undefined) throw new Error(`${script} ended: ${said.slice(-3).join(" ")}`);
      return JSON.parse(line) as T;
    },
    close: () => child.stdin.end(),
  };
}
