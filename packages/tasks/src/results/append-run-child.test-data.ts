// A process that adds runs to a metrics file; metrics-file.test.ts starts several of them, and kills some. Argument: the file.
// Each line of standard input, `name count`, adds `count` runs; the process prints each name once its run is in the file, then
// `done`.
import { createInterface } from "node:readline";
import { appendRun } from "./metrics-file.ts";
import { exampleRun } from "./example-run.test-data.ts";

const path = process.argv[2]!;
process.stdout.write("ready\n");
for await (const line of createInterface({ input: process.stdin })) {
  const [name, count] = line.split(" ");
  for (let i = 0; i < Number(count); i++) {
    await appendRun(path, { ...exampleRun, name: `${name}-${i}` });
    process.stdout.write(`${name}-${i}\n`);
  }
  process.stdout.write("done\n");
}
