// oxlint-disable unicorn/no-thenable -- user code returns thenables
// Ways in which user code misbehaves.
import * as tf from "@tensorflow/tfjs-core";
import { oddValues } from "./mutate.mjs";

const refuse = () => {
  throw new Error("trap");
};
const traps = Object.fromEntries(Object.getOwnPropertyNames(Reflect).map((trap) => [trap, refuse]));
const thrown = [
  undefined,
  null,
  0,
  Number.NaN,
  "",
  "a string",
  Symbol("s"),
  1n,
  () => {},
  new Error("an error"),
  new AggregateError([]),
  new DOMException("aborted", "AbortError"),
  Object.create(null),
  new Proxy({}, traps),
  { toString: refuse },
  Object.defineProperty(new Error("e"), "message", { get: refuse }),
  Object.assign(new Error("a cause"), { cause: new Proxy({}, traps) }),
  { then: 1 },
];
const never = () => new Promise(() => {});

/**
 * Returns a function that misbehaves in a random way, at every call or now and then. It returns undefined to go on as usual.
 *
 * @param report Receives what it does, for the message of a failure.
 * @param without Ways that the case does not use.
 */
export function misbehaviour(random, model, report, without = []) {
  const pick = (list) => list[Math.floor(list.length * random())];
  const error = pick(thrown);
  const changeWeights = () => {
    const { name, read } = pick(model.weights());
    report(`changes ${name}`);
    tf.tidy(() => read().assign(tf.add(read(), 0.01)));
  };
  const later = (work) => void setTimeout(() => work(), 20 * random());
  // oxlint-disable-next-line typescript/prefer-promise-reject-errors -- user code rejects with anything
  const reject = () => Promise.reject(error);
  const acts = {
    mutates: (...given) => given.forEach((one) => spoil(one, pick, 0)),
    throws() {
      throw error;
    },
    rejects: reject,
    "throws later": async () => {
      await turn(random);
      throw error;
    },
    "leaves a rejection": () => void reject(),
    "leaves a late rejection": () => void turn(random).then(reject),
    "leaves a timer that rejects": () => later(() => void reject()),
    "leaves a microtask that throws": () =>
      queueMicrotask(() => {
        throw error;
      }),
    "never settles": never,
    "returns an odd value": () => pick(oddValues),
    "resolves to an odd value": async () => pick(oddValues),
    "returns a thenable that throws": () => ({ then: refuse }),
    "returns a thenable that never settles": () => ({ then() {} }),
    "uses what it received": (...given) => use(given),
    "uses what it received later": (...given) => later(() => use(given)),
    "changes weights": changeWeights,
    "changes weights after an await": async () => Promise.resolve().then(changeWeights),
    "changes weights later": () => later(changeWeights),
    "draws random numbers": () => void Math.random(),
  };
  const name = pick(Object.keys(acts).filter((one) => !without.includes(one)));
  const share = pick([1, 1, 0.3]);
  return (...given) => {
    if (random() >= share) return undefined;
    report(name);
    return acts[name](...given);
  };
}

const turn = (random) => new Promise((resolve) => setTimeout(resolve, 10 * random()));

/** Calls all functions that an argument has, such as those of a model or of a context, and ignores what they do. */
function use(given) {
  for (const one of given)
    for (const [name, method] of Object.entries(one ?? {}))
      // A stop is no misbehaviour.
      if (typeof method === "function" && name !== "requestStop")
        try {
          void Promise.resolve(one[name]([{}], {})).catch(() => undefined);
        } catch {
          // Refused, as it may be.
        }
}

/** Writes odd values wherever an argument lets it. */
function spoil(value, pick, depth) {
  if (value === null || typeof value !== "object" || depth > 4 || ArrayBuffer.isView(value)) return;
  for (const key of Object.keys(value)) spoil(value[key], pick, depth + 1);
  const key = pick([...Object.keys(value), "extra"]);
  for (const write of [
    () => (value[key] = pick(oddValues)),
    () => delete value[key],
    () => Object.defineProperty(value, key, { get: refuse }),
    () => Object.setPrototypeOf(value, null),
    () => Array.isArray(value) && value.reverse().pop(),
  ].filter(() => pick([true, false])))
    try {
      write();
    } catch {
      // Frozen, as it should be.
    }
}
