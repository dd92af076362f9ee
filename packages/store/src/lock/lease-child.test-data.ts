// For lease.slow.test.ts: a store in a process that takes itself for the process `pid` of another system. It obeys lines of stdin.
import { createInterface } from "node:readline";
import { setTimeout } from "node:timers/promises";
import { errorMessage } from "@periodic-eval/contracts/options";
import { exampleSnapshot } from "@periodic-eval/testing";
import { fileStore } from "../snapshots/file-store.ts";
import { thisProcess } from "./lock-owner.ts";

const say = (line: string): void => void process.stdout.write(`${line}\n`);
const [runDir, identity] = process.argv.slice(2) as [string, string];
const owner = {
  ...thisProcess,
  ...(JSON.parse(identity) as object),
  renewMilliseconds: 20,
  nextCheck: () => setTimeout(25),
};
const store = fileStore(runDir, { owner, onWarning: (message) => say(`warning: ${message}`) });
const run = async (what: string, work: () => Promise<void>): Promise<void> => {
  await work().then(
    () => say(what),
    (error: unknown) => say(`${what}: ${errorMessage(error)}`),
  );
};
await run("open", () => store.open!());
for await (const line of createInterface(process.stdin)) {
  if (line === "close") break;
  await run(line, () => store.put(exampleSnapshot({ step: Number(line) }), [{ id: "q1" }]));
}
await run("close", () => store.close!());
