import type { Symbols } from "./symbols.ts";
import { lengthOf } from "./text.ts";
import { Undefined, type Value } from "./values.ts";

/** The variables of a function: the template or a macro. Their identifiers come from `Symbols`. */
export class Variables {
  readonly #values = new Map<string, Value | undefined>();
  readonly #outer: Variables | null;

  constructor(outer: Variables | null) {
    this.#outer = outer;
  }
  get(identifier: string): Value | undefined {
    return this.#values.has(identifier) ? this.#values.get(identifier) : this.#outer?.get(identifier);
  }
  set(identifier: string, value: Value | undefined): void {
    this.#values.set(identifier, value);
  }
}

/** Text that is written. */
export class Output {
  readonly #parts: string[] = [];
  /** In UTF-16 units. */
  length = 0;

  write(text: string): void {
    this.#parts.push(text);
    this.length += text.length;
  }
  get text(): string {
    return this.#parts.join("");
  }
}

/** The state that all parts of a rendering share. */
export class Context {
  /** Variables of the caller and functions, by name. */
  readonly #passed: ReadonlyMap<string, Value>;
  /** Variables that the template itself sets, outside of loops and blocks. */
  readonly assigned = new Map<string, Value>();
  readonly output = new Output();
  readonly #generated: { start: number; characters: number }[] = [];

  constructor(passed: ReadonlyMap<string, Value>) {
    this.#passed = passed;
  }
  resolve(name: string): Value | undefined {
    return this.assigned.has(name) ? this.assigned.get(name) : this.#passed.get(name);
  }
  /** Notes the text of a `{% generation %}`. As in transformers, its start is what the template itself has written so far. */
  addGenerated(text: string): void {
    this.#generated.push({ start: this.output.length, characters: lengthOf(text) });
  }
  /** Half-open ranges in UTF-16 units of `text`, in the order in which the blocks end. */
  generatedIn(text: string): [start: number, end: number][] {
    return this.#generated.map(({ start, characters }) => {
      let end = start;
      for (let i = 0; i < characters && end < text.length; i++)
        end += text.codePointAt(end)! > 0xffff ? 2 : 1;
      return [start, end];
    });
  }
}

export interface Run {
  readonly context: Context;
  readonly variables: Variables;
  readonly output: Output;
}

/** A compiled expression. */
export type Code = (run: Run) => Value;
/** A compiled statement; returns a word if a loop around it ends or continues. */
export type Step = (run: Run) => "break" | "continue" | undefined;

/** Gives variables of a frame their first values. */
export function enter({ loads }: Symbols, { variables, context }: Run): void {
  for (const [identifier, load] of loads) {
    if (load.type === "parameter") continue;
    if (load.type === "resolve") variables.set(identifier, context.resolve(load.name));
    else variables.set(identifier, load.type === "alias" ? variables.get(load.identifier) : undefined);
  }
}

/** Removes variables of a frame. */
export function leave({ loads }: Symbols, { variables }: Run): void {
  for (const identifier of loads.keys()) variables.set(identifier, undefined);
}

export const undefinedName = (name: string): Undefined => new Undefined(`'${name}' is undefined`);
