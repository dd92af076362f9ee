import { expect, it } from "vitest";
import { showMeasuring } from "./progress.ts";
import { recordingTerminal } from "./recording-terminal.test-data.ts";

const at = (seconds: number, done: number, name = "gsm8k") => ({
  name,
  done,
  total: 8,
  seconds,
  tokens: seconds === 0 ? null : 100 * seconds,
});

it("prints a line a minute in a log, and with edges a line at the beginning and at the end", () => {
  const course = [
    at(0, 0),
    at(30, 1),
    at(59, 1),
    at(61, 2),
    at(120, 4),
    at(122, 4),
    at(240, 8),
    at(241, 8),
    at(0, 0, "arc"),
  ];
  for (const edges of [true, false]) {
    const terminal = recordingTerminal();
    const { show, close } = showMeasuring(terminal, { edges });
    for (const progress of course) show(progress);
    close();
    const minutes = [
      // 61 s for two of eight rows: 30.5 s for each of the six others.
      "gsm8k  2 of 8  100 tokens/s  3 min 3 s left",
      "gsm8k  4 of 8  100 tokens/s  2 min 2 s left",
      "gsm8k  8 of 8  100 tokens/s",
    ];
    expect(terminal.errors).toEqual(edges ? ["gsm8k  0 of 8", ...minutes, "arc  0 of 8"] : minutes);
  }
});
