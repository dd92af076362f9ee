import { existsSync, readdirSync, realpathSync, statSync } from "node:fs";
import { basename, dirname, join, relative } from "node:path";
import { it } from "vitest";

const published = "../shared/fixtures";

/** Folder with the numbers of reference implementations. `PERIODIC_EVAL_FIXTURES` names another one of the same kinds. */
export const fixtures = process.env["PERIODIC_EVAL_FIXTURES"] ?? published;

/** Folder with questions, beside the fixtures. */
export const data = join(fixtures, "..", "data");

/** Whether `fixtures` is the folder from which the goldens inside this repository were made. */
export const isPublished =
  existsSync(fixtures) && existsSync(published) && realpathSync(fixtures) === realpathSync(published);

/** Part of the title of a test that is skipped unless `isPublished`. */
export const publishedOnly = `goldens of ${published} only`;

/** Follows links, which a recursive `readdirSync` does not. */
const filesBelow = (folder: string): readonly string[] =>
  readdirSync(folder).flatMap((name) => {
    const path = join(folder, name);
    return statSync(path).isDirectory() ? filesBelow(path) : [path];
  });

/** Files whose path below `folder`, with `/` between segments, matches; sorted. */
const findFiles = (folder: string, pattern: RegExp): readonly string[] =>
  (existsSync(folder) ? filesBelow(folder) : [])
    .filter((path) => pattern.test(relative(folder, path).replaceAll("\\", "/")))
    .toSorted();

/** Paths of the files whose path below `fixtures` matches, sorted. */
export const findFixtures = (pattern: RegExp): readonly string[] => findFiles(fixtures, pattern);

/** Paths of the files whose path below `data` matches, sorted. */
export const findData = (pattern: RegExp): readonly string[] => findFiles(data, pattern);

/**
 * Path of the file or folder that belongs to a JSON file: in the same folder, with a name that matches. When several match,
 * the one whose name starts with the JSON file's wins. Throws when none matches.
 */
export function companionOf(file: string, pattern: RegExp): string {
  const folder = dirname(file);
  const names = readdirSync(folder)
    .toSorted()
    .filter((name) => pattern.test(name));
  const name = names.find((each) => each.startsWith(basename(file, ".json"))) ?? names[0];
  if (name === undefined) throw new Error(`${folder}: expected a name that matches ${pattern}, found none`);
  return join(folder, name);
}

/** Registers a skipped test that names what `folder` lacks. vitest fails a file without tests. */
export function reportMissing(what: string, folder = fixtures): void {
  it.skip(`needs ${what} in ${folder}`, () => {});
}
