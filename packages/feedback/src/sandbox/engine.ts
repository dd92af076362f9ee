// The worker in which untrusted code runs. run-in-sandbox.ts starts it for one request and ends it afterwards.
import { parentPort, workerData } from "node:worker_threads";
import { evaluate, type SandboxReply, type SandboxRequest } from "./evaluate.ts";

const send = (reply: SandboxReply): void => parentPort!.postMessage(reply);

void evaluate(workerData as SandboxRequest, () => send({ kind: "ready" })).then(send);
