// The process that kill-storm.slow.test.ts kills: a run of two slow tasks, which writes the name of a task to a file before each
// call of the model. Arguments: the folder of results, the suite, that file.
import { appendFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { Evaluator } from "./evaluator.ts";
import { choiceTask, fakeTrainer, replyTask } from "../suite/fake-tasks.test-data.ts";

const [results, suite, log] = process.argv.slice(2) as [string, string, string];
const before = async (task: string) => {
  appendFileSync(log, `${task}\n`);
  await sleep(10);
};
process.stdout.write("ready\n");
await Evaluator.fromTrainer(fakeTrainer(), {
  name: "sft",
  tasks: { choices: choiceTask({ before }), replies: replyTask({ before }) },
  suite,
  results,
}).run();
