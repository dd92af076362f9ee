// The process in which untrusted code runs. run-in-sandbox.ts starts it for one request and kills it afterwards.
import { Worker } from "node:worker_threads";
import { evaluate } from "./evaluate.ts";
import type { SandboxReply, SandboxRequest } from "./messages.ts";

const send = (reply: SandboxReply): boolean => process.send!(reply);

process.once(
  "message",
  (request: SandboxRequest) => void evaluate(request, () => send({ kind: "ready" })).then(send),
);
// Without a parent, nothing would end this process. A thread of its own also sees that while code runs that the engine cannot
// interrupt.
process.once("disconnect", () => process.exit());
new Worker(
  `setInterval(() => process.ppid === ${process.ppid} || process.kill(process.pid, "SIGKILL"), 50);`,
  { eval: true, execArgv: [] },
);
