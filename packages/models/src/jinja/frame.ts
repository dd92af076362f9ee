import { fail } from "./errors.ts";
import { Symbols } from "./symbols.ts";

/** A part of a template with variables, while it is compiled. */
export interface Frame {
  readonly symbols: Symbols;
  /** Whether assignments are visible in the whole template. */
  readonly isTop: boolean;
  /** Whether the code may not run, so that an unknown filter is an error only if it runs. */
  readonly isConditional: boolean;
  readonly isInLoop: boolean;
}

export function innerFrame(outer: Frame, isInLoop = outer.isInLoop): Frame {
  return { symbols: new Symbols(outer.symbols), isTop: false, isConditional: false, isInLoop };
}

export const conditionalFrame = (frame: Frame): Frame => ({ ...frame, isConditional: true });

export function identifierOf(frame: Frame, name: string): string {
  return frame.symbols.find(name) ?? fail(`the variable ${name} cannot be read here`);
}
