import { lengthOf } from "./text.ts";
import type { Value } from "./values.ts";

/** The names that the statements of a scope use: the template, the body of a loop, a macro or another block. */
export class Scope {
  readonly #outer: Scope | null;
  readonly #names = new Set<string>();
  readonly #stored = new Set<string>();
  /** Names that the scope assigns before it reads them. */
  readonly #assignedFirst = new Set<string>();
  #hidden: readonly (readonly [string, undefined])[] | null = null;

  constructor(outer: Scope | null) {
    this.#outer = outer;
  }

  has(name: string): boolean {
    return this.#names.has(name) || (this.#outer !== null && this.#outer.has(name));
  }

  load(name: string): void {
    this.#names.add(name);
  }

  store(name: string, isParameter = false): void {
    this.#stored.add(name);
    if (isParameter) this.#assignedFirst.delete(name);
    else if (!this.#names.has(name)) this.#assignedFirst.add(name);
    this.#names.add(name);
  }

  /** Notes the names of branches. A variable that only some branches assign has its earlier value in the others. */
  branch<T>(parse: () => T): T {
    const before = new Set(this.#stored);
    const parsed = parse();
    for (const name of this.#stored) if (!before.has(name)) this.#assignedFirst.delete(name);
    return parsed;
  }

  /**
   * Enters the scope. As in jinja2, its variables are known before the template runs: until it assigns them they have no value,
   * although the caller may pass them.
   */
  enter(run: Run): Run {
    this.#hidden ??= [...this.#assignedFirst]
      .filter((name) => this.#outer?.has(name) !== true)
      .map((name) => [name, undefined] as const);
    return { ...run, variables: new Variables(run.variables, this.#hidden) };
  }
}

/** The variables of a scope, and those around it. */
export class Variables {
  readonly #values: Map<string, Value | undefined>;
  readonly #outer: Variables | null;

  constructor(outer: Variables | null, values: Iterable<readonly [string, Value | undefined]>) {
    this.#outer = outer;
    this.#values = new Map(values);
  }
  get(name: string): Value | undefined {
    return this.#values.has(name) ? this.#values.get(name) : this.#outer?.get(name);
  }
  set(name: string, value: Value | undefined): undefined {
    this.#values.set(name, value);
  }
}

/** Text that is written. */
export class Output {
  readonly #parts: string[] = [];
  /** In UTF-16 units. */
  length = 0;

  write(text: string): undefined {
    this.#parts.push(text);
    this.length += text.length;
  }
  get text(): string {
    return this.#parts.join("");
  }
}

/** The text of a rendering, and its parts inside of `{% generation %}`. */
export class Context {
  readonly output = new Output();
  readonly #generated: { start: number; characters: number }[] = [];

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

/** The state of a rendering in a scope. */
export interface Run {
  readonly context: Context;
  readonly variables: Variables;
  readonly output: Output;
}
