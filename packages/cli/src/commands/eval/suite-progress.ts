import type { TaskProgress } from "@periodic-eval/tasks";
import { createLogUpdate } from "log-update";
import type { Terminal } from "../../terminal/terminal.ts";

/** Shows the progress of a suite: a counting line on a screen, otherwise a line when a task begins and one when it ends. */
export function suiteProgress(terminal: Terminal): {
  readonly onProgress: (progress: TaskProgress) => void;
  close(): void;
} {
  const line = terminal.isInteractive ? createLogUpdate(process.stderr) : null;
  let task = "";
  return {
    onProgress({ task: current, done, total }) {
      const text = `${current}  ${done} of ${total}`;
      if (line !== null) line(text);
      else if (current !== task || done === total) terminal.err(text);
      task = current;
    },
    close: () => line?.clear(),
  };
}
