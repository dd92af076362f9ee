// Runs cases of one area in a process of their own. Usage: forked with an area's name and a folder; receives `{ seed }`.
import { inspect } from "node:util";
import { callbacks } from "./callbacks.mjs";
import { damage } from "./damage.mjs";
import { fuzz } from "./fuzz.mjs";
import { http } from "./http.mjs";

const [name, folder] = process.argv.slice(2);
const attack = await { callbacks, damage, fuzz, http }[name](folder);
process.on("message", async ({ seed }) => {
  const failure = await attack(seed).then(
    () => null,
    (error) => (error instanceof Error ? (error.stack ?? error.message) : inspect(error)),
  );
  // A late rejection ends the process before the reply.
  setImmediate(() => process.send({ failure }));
});
