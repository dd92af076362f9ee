const own = new WeakSet<object>();

/** Marks an evaluation or logger of this package that runs no code of the user, and so leaves no promise behind. */
export function ownCode<T extends object>(object: T): T {
  own.add(object);
  return object;
}

export const isOwnCode = (object: object): boolean => own.has(object);
