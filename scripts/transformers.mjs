// Installs the optional peer @huggingface/transformers, with ONNX Runtime, from npm. Everything is in .cache/transformers;
// node_modules gets a link.
// Usage: npm run transformers [-- --force]      --force reinstalls everything
import { readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { installOptional } from "./optional-packages.mjs";

const name = "@huggingface/transformers";

/** ONNX Runtime's package holds the libraries of all platforms, in `bin/napi-v<N>/<platform>/<arch>`. */
function prune(modules) {
  const bin = join(modules, "onnxruntime-node", "bin");
  for (const level of readdirSync(bin))
    for (const other of readdirSync(join(bin, level)))
      if (other !== process.platform) rmSync(join(bin, level, other), { recursive: true });
}

await installOptional(
  "transformers",
  { [name]: "4.3.1" },
  {
    prune,
    code: `await import("${name}");`,
    otherwise: "models of this library work without it.",
    done: () => `${name} is installed`,
  },
);
