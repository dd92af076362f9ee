// The licences of packages of npm whose code is bundled into ours.
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { Missing, root } from "./steps.mjs";

/** Returns the files of which a bundle contains code. */
export const bundledFiles = ({ outputs }) =>
  Object.values(outputs).flatMap(({ inputs }) =>
    Object.keys(inputs).filter((input) => inputs[input].bytesInOutput > 0),
  );

/** A shorter text only names a licence. */
const shortestLicence = 500;

const licenceOf = (holder, other, file) => () =>
  readFileSync(join(root, file), "utf8").trim().replace(other, `Copyright (c) ${holder}`);

/** The standard texts of licences, for packages that do not contain theirs. */
const standardTexts = (holder) => ({
  MIT: licenceOf(holder, /^Copyright .*$/m, "node_modules/zod/LICENSE"),
  "Apache-2.0": licenceOf(holder, /(?!)/, "LICENSE"),
  // Its text may be linked, if the place of the source is named.
  "MPL-2.0": () => "The licence is at https://www.mozilla.org/MPL/2.0/, the source at the address above.",
});

/** Returns the comments at the beginning of a source file, if they name a copyright or a licence; else null. */
function headOf(file) {
  const head = /^(?:\s*(?:\/\*[^]*?\*\/|\/\/[^\n]*\n))+/.exec(readFileSync(file, "utf8"))?.[0] ?? "";
  return /\.[cm]?js$/.test(file) && /copyright|licen[cs]e/i.test(head) ? head.trim() : null;
}

/** Returns the texts of licences and notices in a package's folder. */
function textsIn(folder) {
  const read = (file) => readFileSync(join(folder, file), "utf8").trim();
  const texts = readdirSync(folder)
    .filter((file) => /^(licen[cs]e|copying|notice)/i.test(file))
    .map(read);
  // Some packages have their licence in the README only.
  return texts.length === 0 && existsSync(join(folder, "README.md"))
    ? (/^#* *licen[cs]e\b[^]*/im.exec(read("README.md")) ?? [])
    : texts;
}

/**
 * Collects the licences of the packages of npm among files.
 *
 * @param files Paths from the repository's root.
 * @returns For each package its title (name, version, licence and source), and the text: its licence, or the standard text of the
 *   licence that it names, and the notices at the beginning of its files.
 * @throws Missing for a package with an unknown licence and without its text.
 */
export function licencesOf(files) {
  const packages = new Map();
  for (const file of files) {
    const folder = /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(file)?.[0];
    if (folder !== undefined) packages.set(folder, [...(packages.get(folder) ?? []), file]);
  }
  return [...packages].map(([folder, bundled]) => {
    const {
      name,
      version,
      license,
      author,
      repository = "",
    } = JSON.parse(readFileSync(join(root, folder, "package.json"), "utf8"));
    const texts = textsIn(join(root, folder));
    const heads = bundled.map((file) => headOf(join(root, file))).filter((head) => head !== null);
    if (texts.join("").length < shortestLicence) {
      const standard = standardTexts(author?.name ?? author ?? `the authors of ${name}`);
      const known = license.match(/[\w.-]+/g).filter((id) => standard[id] !== undefined);
      if (known.length === 0 && heads.join("").length < shortestLicence)
        throw new Missing(
          folder,
          `${license} without a text`,
          "the text of its licence",
          "Correct scripts/licences.mjs.",
        );
      texts.push(...known.map((id) => standard[id]()));
    }
    return {
      title: `${name} ${version} (${license}) ${repository.url ?? repository}`.trim(),
      text: [...new Set([...texts, ...heads])].join("\n\n"),
    };
  });
}

/** Joins licences to a text that begins with the list of their packages. */
export function printLicences(licences, introduction) {
  const list = licences.map(({ title }) => `- ${title}`).join("\n");
  const parts = licences.map(({ title, text }) => `${title}\n\n${text}`);
  return `${[`${introduction}\n\n${list}`, ...parts].join("\n\n---\n\n")}\n`;
}
