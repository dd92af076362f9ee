// Builds the optional backend tfjs-node, or with --gpu tfjs-node-gpu: `periodic-eval native` with the cache in .cache/native.
// `npm ci` removes the backend from node_modules; a second run restores it from the cache.
// Usage: npm run native [-- --gpu] [--libtensorflow FOLDER] [--force]
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { runCli } from "periodic-eval";

const root = fileURLToPath(new URL("..", import.meta.url));
const cache = join(root, ".cache", "native");
process.exitCode = await runCli(["native", "--cache", cache, ...process.argv.slice(2)]);
