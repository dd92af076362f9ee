// Our code inside the sandbox. It is compiled before the untrusted code, which could replace built-ins. It therefore calls only
// functions that it captured at the start, and walks arrays by index instead of by iterator.

/**
 * Source of `(text, length) => boolean`: whether a string of `length` UTF-16 units contains neither a NUL nor half a surrogate
 * pair. Copying such a string out of the engine would change it.
 */
export const isWellFormedText = `(() => {
  const unitAt = Function.prototype.call.bind(String.prototype.charCodeAt);
  return (text, length) => {
    for (let at = 0; at < length; at += 1) {
      const unit = unitAt(text, at);
      if (unit === 0 || (unit >= 0xdc00 && unit <= 0xdfff)) return false;
      if (unit < 0xd800 || unit > 0xdbff) continue;
      at += 1;
      const next = at < length ? unitAt(text, at) : 0;
      if (next < 0xdc00 || next > 0xdfff) return false;
    }
    return true;
  };
})()`;

/** Source of `() => string | null`: the name of the first changed built-in, such as `Array.prototype.map`. */
export const changedBuiltIn = `(() => {
  const { ownKeys, getOwnPropertyDescriptor, getPrototypeOf } = Reflect;
  const nameOf = String;
  const isSame = (a, b) => a === b || (a !== a && b !== b);
  const kept = [];
  const seen = new Set();
  const keep = (name, holder) => {
    if (holder === null || (typeof holder !== "object" && typeof holder !== "function") || seen.has(holder)) return;
    seen.add(holder);
    const keys = ownKeys(holder);
    const own = [];
    for (let at = 0; at < keys.length; at += 1)
      own[at] = { key: keys[at], was: getOwnPropertyDescriptor(holder, keys[at]) };
    kept[kept.length] = { name, holder, own, count: keys.length, parent: getPrototypeOf(holder), grows: name === "globalThis" };
  };
  keep("globalThis", globalThis);
  const names = ownKeys(globalThis);
  for (let at = 0; at < names.length; at += 1) {
    const value = getOwnPropertyDescriptor(globalThis, names[at]).value;
    const name = nameOf(names[at]);
    keep(name, value);
    if (typeof value === "function") keep(name + ".prototype", value.prototype);
  }
  // No global leads to these prototypes.
  const hidden = {
    ArrayIterator: [][Symbol.iterator](),
    MapIterator: new Map().entries(),
    SetIterator: new Set().values(),
    StringIterator: ""[Symbol.iterator](),
    RegExpStringIterator: "".matchAll(/a/g),
    GeneratorFunction: function* () {},
    AsyncFunction: async function () {},
    AsyncGeneratorFunction: async function* () {},
  };
  for (const name of ownKeys(hidden)) keep(name + ".prototype", getPrototypeOf(hidden[name]));
  for (let at = 0; at < kept.length; at += 1) {
    const { name, own, parent } = kept[at];
    for (const { key, was } of own) {
      const place = name + "." + nameOf(key);
      keep(place, was.value);
      keep(place, was.get);
      keep(place, was.set);
    }
    keep("prototype of " + name, parent);
  }
  return () => {
    for (let at = 0; at < kept.length; at += 1) {
      const { name, holder, own, count, parent, grows } = kept[at];
      if (getPrototypeOf(holder) !== parent) return name;
      const keys = ownKeys(holder);
      // The code may define new globals.
      if (keys.length < count || (!grows && keys.length > count)) return name;
      for (let i = 0; i < own.length; i += 1) {
        const { key, was } = own[i];
        const is = getOwnPropertyDescriptor(holder, key);
        if (is === undefined || !isSame(is.value, was.value) || is.get !== was.get || is.set !== was.set)
          return name + "." + nameOf(key);
      }
    }
    return null;
  };
})()`;
