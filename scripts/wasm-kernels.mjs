// Compiles packages/models/src/wasm-kernels/kernels.wat into binary.ts, as a step of `npm run build`.
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import wabt from "wabt";

const folder = new URL("../packages/models/src/wasm-kernels/", import.meta.url);
const binary = new URL("binary.ts", folder);

/** Writes binary.ts if kernels.wat has changed. */
export async function writeKernels() {
  const features = { simd: true, threads: true };
  const { parseWat } = await wabt();
  const module = parseWat("kernels.wat", readFileSync(new URL("kernels.wat", folder), "utf8"), features);
  module.validate(features);
  const bytes = Buffer.from(module.toBinary({}).buffer).toString("base64");
  const text = `/** kernels.wat, compiled by \`npm run build\`. */\nexport const kernelsBase64 =\n  "${bytes}";\n`;
  if (!existsSync(binary) || readFileSync(binary, "utf8") !== text) writeFileSync(binary, text);
}
