import { fork } from "node:child_process";
import { mkdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { memoryOf } from "./memory.mjs";

const worker = fileURLToPath(new URL("worker.mjs", import.meta.url));
/** Longer than any case takes on a busy machine, the start of its process included. */
const deadlineSeconds = 90;

/** Returns an area whose cases run in another process, because a case may hang or end it. */
export const inWorker = (name) => ({
  async prepare(folder) {
    mkdirSync(folder, { recursive: true });
    let child = null;
    let peak = 0;
    // A process that a case starts may end before the case does.
    const watch = setInterval(() => child && (peak = Math.max(peak, memoryOf(child.pid))), 100);
    const end = () => {
      child?.kill("SIGKILL");
      child = null;
    };
    const start = () => {
      child = fork(worker, [name, folder], { stdio: ["ignore", "pipe", "pipe", "ipc"] });
      child.printed = "";
      for (const stream of [child.stdout, child.stderr])
        stream.on("data", (piece) => child && (child.printed = (child.printed + piece).slice(-2000)));
    };
    const attack = (seed) =>
      new Promise((resolve, reject) => {
        if (child === null) start();
        const current = child;
        /** @param {Error | null} error */
        const done = (error) => {
          clearTimeout(timer);
          peak = Math.max(peak, memoryOf(current.pid));
          current.removeAllListeners("message").removeAllListeners("exit");
          if (error === null) return resolve();
          end();
          reject(error);
        };
        const timer = setTimeout(
          () => done(new Error(`no end within ${deadlineSeconds} s`)),
          1000 * deadlineSeconds,
        );
        current.on("message", ({ failure }) => done(failure === null ? null : new Error(failure)));
        current.on("exit", (code, signal) =>
          done(new Error(`the process ended with ${code ?? signal}: ${current.printed}`)),
        );
        current.send({ seed });
      });
    return { attack, peakBytes: () => peak, close: async () => (clearInterval(watch), end()) };
  },
});
