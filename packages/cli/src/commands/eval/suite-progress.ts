import type { TaskProgress } from "@periodic-eval/tasks";
import { createLogUpdate } from "log-update";
import type { Terminal } from "../../terminal/terminal.ts";

/** Shows how far a suite is: a line that counts on a screen, elsewhere one for each task as it begins and ends. */
export function suiteProgress(terminal: Terminal): {
  readonly onProgress: (progress: TaskProgress) => void;
  close(): void;
} {
  const line = terminal.isInteractive ? createLogUpdate(process.stderr) : null;
  let task = "";
  return {
    onProgress({ task: now, done, total }) {
      const text = `${now}  ${done} of ${total}`;
      if (line !== null) line(text);
      else if (now !== task || done === total) terminal.err(text);
      task = now;
    },
    close: () => line?.clear(),
  };
}
