// Prints the size of a folder every five seconds, with its rate and the time left. A process of its own, because npm and pip block the
// script that waits for them.
// Usage: node scripts/growth.mjs FOLDER [MEGABYTES]
import { lstatSync, readdirSync } from "node:fs";
import { join } from "node:path";

const [folder, megabytesText] = process.argv.slice(2);
const total = megabytesText === undefined ? null : Number(megabytesText);
const everySeconds = 5;

function sizeInMegabytes() {
  const sizes = readdirSync(folder, { recursive: true }).map((name) => {
    try {
      return lstatSync(join(folder, name)).size;
    } catch {
      // npm moves files while it installs.
      return 0;
    }
  });
  return sizes.reduce((sum, size) => sum + size, 0) / 1e6;
}

const started = performance.now();
setInterval(() => {
  const done = sizeInMegabytes();
  const rate = (done / (performance.now() - started)) * 1000;
  // npm first downloads into its own cache.
  const isPredictable = total !== null && done > total / 20;
  const left = isPredictable ? Math.ceil((total - done) / rate) : 0;
  console.log(
    [
      `  ${done.toFixed(0)}${total === null ? "" : ` of ${total}`} MB`,
      `${rate.toFixed(1)} MB/s`,
      ...(left > 0 ? [`${left} s left`] : []),
    ].join("  "),
  );
}, 1000 * everySeconds);
