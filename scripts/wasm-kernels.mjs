// Compiles packages/models/src/wasm-kernels/kernels.wat into binary.ts beside it, as `npm run build` does.
// Usage: node scripts/wasm-kernels.mjs [--check]     (--check fails if binary.ts belongs to another kernels.wat)
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import wabt from "wabt";

const folder = new URL("../packages/models/src/wasm-kernels/", import.meta.url);
const binary = new URL("binary.ts", folder);

/** Returns the contents of binary.ts. */
async function compiledKernels() {
  const features = { simd: true, threads: true };
  const { parseWat } = await wabt();
  const module = parseWat("kernels.wat", readFileSync(new URL("kernels.wat", folder), "utf8"), features);
  module.validate(features);
  const text = Buffer.from(module.toBinary({}).buffer).toString("base64");
  return `/** kernels.wat, compiled by \`npm run build\`. */\nexport const kernelsBase64 =\n  "${text}";\n`;
}

const isCurrent = (text) => existsSync(binary) && readFileSync(binary, "utf8") === text;

/** Writes binary.ts if kernels.wat has changed. */
export async function writeKernels() {
  const text = await compiledKernels();
  if (!isCurrent(text)) writeFileSync(binary, text);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  if (!process.argv.includes("--check")) await writeKernels();
  else if (!isCurrent(await compiledKernels())) {
    console.error("binary.ts is not kernels.wat, compiled. Run `npm run build`.");
    process.exitCode = 1;
  }
}
