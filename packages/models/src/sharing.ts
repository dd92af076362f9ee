import * as tf from "@tensorflow/tfjs-core";
import type { Awaitable } from "@periodic-eval/core";

/** Something that is loaded once and disposed once. */
interface Disposable {
  dispose(): Awaitable<void>;
}

/** The part that one user has in something shared. */
export interface Share<T> {
  /** Returns it, and loads it unless another user has. After `close` it takes part again. */
  open(): Promise<T>;
  /** Ends this part. The last one disposes it. */
  close(): Promise<void>;
}

interface Entry<T> {
  readonly loaded: Promise<T>;
  parts: number;
}

/** Returns a function that returns a part in what `key` names on the current backend: this process loads it once for all parts. */
export function sharing<T extends Disposable>(): (key: string, load: () => Promise<T>) => Share<T> {
  const entries = new Map<string, Entry<T>>();
  return (key, load) => {
    let current: { readonly key: string; readonly entry: Entry<T> } | null = null;
    const take = () => {
      const entryKey = `${tf.getBackend()} ${key}`;
      const entry = entries.get(entryKey) ?? { loaded: load(), parts: 0 };
      entry.parts += 1;
      entries.set(entryKey, entry);
      return { key: entryKey, entry };
    };
    const remove = ({ key: entryKey, entry }: NonNullable<typeof current>) => {
      if (entries.get(entryKey) === entry) entries.delete(entryKey);
    };
    return {
      async open() {
        const taken = (current ??= take());
        try {
          return await taken.entry.loaded;
        } catch (error) {
          // The next attempt loads again.
          remove(taken);
          if (current === taken) current = null;
          throw error;
        }
      },
      async close() {
        if (current === null) return;
        const { entry } = current;
        entry.parts -= 1;
        if (entry.parts === 0) remove(current);
        current = null;
        if (entry.parts === 0)
          await entry.loaded.then(
            (loaded) => loaded.dispose(),
            () => undefined,
          );
      },
    };
  };
}
