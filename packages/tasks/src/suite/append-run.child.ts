// A process that metrics-file.test.ts starts several of at once, and kills: it adds runs to a file, and says after each that
// it stands there. Arguments: the file, its own name, how many.
import { appendRun } from "./metrics-file.ts";
import { exampleRun } from "./example-run.test-data.ts";

const [path, name, count] = process.argv.slice(2) as [string, string, string];
process.stdout.write("ready\n");
for (let i = 0; i < Number(count); i++) {
  await appendRun(path, { ...exampleRun, name: `${name}-${i}` });
  process.stdout.write(`${name}-${i}\n`);
}
