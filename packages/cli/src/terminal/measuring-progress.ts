import type { MeasurementPace } from "@periodic-eval/core";
import { paceText } from "@periodic-eval/core/console";
import { screenLine, type Terminal } from "./terminal.ts";

export interface MeasuringProgress extends MeasurementPace {
  /** Names what is measured. */
  readonly name: string;
  readonly done: number;
  readonly total: number;
}

export interface MeasuringDisplay {
  show(progress: MeasuringProgress): void;
  close(): void;
}

/** Between two lines about one measurement in a log. */
const lineSeconds = 60;

/**
 * Shows rows, tokens per second and the time left while a model answers: a moving line on a screen, otherwise a line a minute.
 *
 * @param edges Whether a log also gets a line when a measurement begins and one when it ends.
 */
export function showMeasuring(terminal: Terminal, { edges }: { readonly edges: boolean }): MeasuringDisplay {
  const line = terminal.isInteractive ? screenLine() : null;
  let shown = { name: "", seconds: 0, ended: false };
  return {
    show(progress) {
      const { name, done, total, seconds } = progress;
      const text = [`${name}  ${done} of ${total}`, paceText(progress) ?? []].flat().join("  ");
      if (line !== null) return line(text);
      const isNew = name !== shown.name;
      const ended = done === total;
      if (isNew) shown = { name, seconds: 0, ended: false };
      const isEdge = edges && (isNew || (ended && !shown.ended));
      shown.ended = ended;
      if (!isEdge && seconds - shown.seconds < lineSeconds) return;
      shown.seconds = seconds;
      terminal.err(text);
    },
    close: () => line?.clear(),
  };
}
