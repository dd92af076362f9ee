import { buildNative, type NativeOptions } from "@periodic-eval/kernels/native-build";
import { nativeBackendFolder } from "@periodic-eval/models";
import type { Command } from "commander";
import { jsonText, type Terminal } from "../../terminal/terminal.ts";

/** `native`: builds native TensorFlow for TensorFlow.js, with or without GPU. */
export function addNative(program: Command, terminal: Terminal): void {
  program
    .command("native")
    .description("build native TensorFlow (Linux), the fastest backend")
    .option("--gpu", "build tfjs-node-gpu, for NVIDIA GPUs", false)
    .option("--libtensorflow <folder>", "use this Python package tensorflow or libtensorflow")
    .option("--cache <folder>", "folder of downloads and builds (default: in ~/.cache)")
    .option("--force", "download and build everything again", false)
    .option("--json", "print one JSON document", false)
    .action(
      async ({ json, ...options }: Omit<NativeOptions, "folder" | "report"> & { readonly json: boolean }) => {
        const folder = nativeBackendFolder();
        const message = await buildNative({ ...options, folder, report: (line) => terminal.err(line) });
        terminal.out(json ? jsonText({ folder, gpu: options.gpu === true, message }) : message);
      },
    );
}
