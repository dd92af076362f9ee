// The process in which untrusted code runs. run-in-sandbox.ts starts it for one request and kills it afterwards.
import { Worker } from "node:worker_threads";
import { evaluate, type SandboxReply, type SandboxRequest } from "./evaluate.ts";

/** Read before the engine loads: another process is the parent of one whose parent has ended. */
const parent = process.ppid;
const send = (reply: SandboxReply): boolean => process.send!(reply);

process.once("message", (request: SandboxRequest) => {
  const onReady = () => {
    send({ kind: "ready" });
    endWithParent();
  };
  void evaluate(request, onReady).then(send);
});
// Without a parent, nothing would end this process.
process.once("disconnect", () => process.exit());

/** Ends this process with its parent also while code runs that the engine cannot interrupt: another thread looks for the parent. */
function endWithParent(): void {
  const watch = `setInterval(() => process.ppid === ${parent} || process.kill(process.pid, "SIGKILL"), 50);`;
  // Without a thread, the code still runs.
  new Worker(watch, { eval: true, execArgv: [] }).on("error", () => undefined);
}
