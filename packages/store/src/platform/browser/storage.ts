export interface FileRecord {
  readonly kind: "file";
  readonly id: number;
  readonly size: number;
  readonly mtimeMs: number;
}

export interface FolderRecord {
  readonly kind: "folder";
  readonly id: number;
  /** The id of each child by its name. */
  readonly children: readonly (readonly [string, number])[];
  readonly mtimeMs: number;
}

/** Changes that a storage applies all or none of. */
export interface Changes {
  readonly records: readonly (FileRecord | FolderRecord)[];
  readonly contents: readonly (readonly [id: number, bytes: Uint8Array])[];
  readonly removed: readonly number[];
}

/** Keeps files by number, and which names they have. */
export interface Storage {
  load(): Promise<readonly (FileRecord | FolderRecord)[]>;
  /** Returns the content of a file. */
  read(id: number): Promise<Uint8Array>;
  /** Applies the changes durably, all or none. Reads them before it returns its promise. */
  write(changes: Changes): Promise<void>;
}
