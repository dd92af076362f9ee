import type { SnapshotKey } from "@periodic-eval/contracts";
import { keyText } from "@periodic-eval/store";

/** Grading that takes less time is reported by its result only. */
const shortGradingMs = 1_000;

/** Lines about measurements that are being graded. A rule grades before its line is due. */
export class GradingLines {
  readonly #keep: (line: string) => void;
  readonly #waiting = new Map<string, { readonly timer: ReturnType<typeof setTimeout>; print(): void }>();

  constructor(keep: (line: string) => void) {
    this.#keep = keep;
  }

  wait(key: SnapshotKey, line: string): void {
    this.end(key);
    const print = () => {
      this.end(key);
      this.#keep(line);
    };
    const timer = setTimeout(print, shortGradingMs);
    // Browsers' timers are numbers.
    timer.unref?.();
    this.#waiting.set(keyText(key), { timer, print });
  }

  end(key: SnapshotKey): void {
    clearTimeout(this.#waiting.get(keyText(key))?.timer);
    this.#waiting.delete(keyText(key));
  }

  flush(): void {
    for (const { print } of this.#waiting.values()) print();
  }
}
