// The process in which untrusted code runs. run-in-sandbox.ts starts it for one request and kills it afterwards.
import { evaluate } from "./evaluate.ts";
import type { SandboxReply, SandboxRequest } from "./messages.ts";

const send = (reply: SandboxReply): boolean => process.send!(reply);

process.once(
  "message",
  (request: SandboxRequest) => void evaluate(request, () => send({ kind: "ready" })).then(send),
);
// Without a parent, nothing would end this process.
process.once("disconnect", () => process.exit());
