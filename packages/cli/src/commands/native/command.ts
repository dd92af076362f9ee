import type { Command } from "commander";
import type { Terminal } from "../../terminal/terminal.ts";
import type { NativeOptions } from "./run.ts";

/** `native`: builds native TensorFlow for TensorFlow.js, with or without GPU. */
export function addNative(program: Command, terminal: Terminal): void {
  program
    .command("native")
    .description("build native TensorFlow (Linux), the fastest backend; --gpu adds NVIDIA GPUs")
    .option("--gpu", "build tfjs-node-gpu: TensorFlow for NVIDIA GPUs with NVIDIA's libraries", false)
    .option(
      "--libtensorflow <folder>",
      "use this Python package tensorflow or unpacked libtensorflow archive",
    )
    .option(
      "--cache <folder>",
      "where libraries and builds are kept (default: periodic-eval/native in $XDG_CACHE_HOME or ~/.cache)",
    )
    .option("--force", "download and build everything again", false)
    .action(async (options: NativeOptions) => {
      const { buildNative } = await import("./run.ts");
      terminal.out(await buildNative(options, terminal));
    });
}
