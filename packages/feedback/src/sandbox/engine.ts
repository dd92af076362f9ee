// The process in which untrusted code runs. run-in-sandbox.ts starts it for one request and kills it afterwards.
import { Worker } from "node:worker_threads";
import { evaluate } from "./evaluate.ts";
import type { SandboxReply, SandboxRequest } from "./messages.ts";

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

/** Ends this process with its parent also while code runs that the engine cannot interrupt: a thread of its own looks for the parent. */
function endWithParent(): void {
  const watch = `setInterval(() => process.ppid === ${process.ppid} || process.kill(process.pid, "SIGKILL"), 50);`;
  new Worker(watch, { eval: true, execArgv: [] });
}
