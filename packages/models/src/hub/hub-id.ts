/** A model of the Hugging Face hub. */
export interface HubId {
  /** `owner/name`. */
  readonly name: string;
  /** A branch, a tag or a commit. */
  readonly revision: string;
}

// Names as the hub takes them; no segment may begin with a dot, so that none can lead out of a folder.
const word = String.raw`[A-Za-z0-9_](?:[\w.-]*[\w])?`;
const pattern = new RegExp(`^(${word}/${word})(?:@(${word}(?:/${word})*))?$`);

/** Reads `owner/name` or `owner/name@revision`; null where the text is neither. */
export function parseHubId(text: string): HubId | null {
  const [, name, revision = "main"] = pattern.exec(text) ?? [];
  return name === undefined || name.length > 200 || /--|\.\./.test(name) ? null : { name, revision };
}

export const isCommit = (text: string): boolean => /^[0-9a-f]{40}$/.test(text);

/** As a person writes it. */
export function shownId({ name, revision }: HubId): string {
  return revision === "main" ? name : `${name}@${revision}`;
}
