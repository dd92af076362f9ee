import { fail } from "./errors.ts";

const baseWork = 2_000_000;
const workPerCharacter = 100;
const longestText = 100_000_000;
let remaining = baseWork;

/** Starts to count the work of a rendering. Renderings are synchronous, so that a single counter is enough. */
export function startWork(inputCharacters: number): void {
  remaining = baseWork + workPerCharacter * inputCharacters;
}

/** Counts steps, or characters of a string that is made; throws once a rendering has made too many, after about a second. */
export function spend(amount: number): void {
  remaining -= amount;
  if (!(remaining >= 0)) fail("the template takes too many steps or writes too much text");
}

/** Returns `text`, `count` times. */
export function repeated(text: string, count: number): string {
  const times = Math.max(0, count);
  if (text.length * times > longestText) fail("the template makes a string that is too long");
  spend(text.length * times);
  return text.repeat(times);
}
