import type { FileRecord, FolderRecord, Storage } from "./storage.ts";

/** A storage in the browser's IndexedDB. */
export interface IndexedDbStorage extends Storage {
  close(): void;
}

/** Opens a database of files, and creates it if it does not exist. */
export async function openIndexedDb(name: string): Promise<IndexedDbStorage> {
  const request = indexedDB.open(name, 1);
  request.addEventListener("upgradeneeded", () => {
    request.result.createObjectStore("records", { keyPath: "id" });
    request.result.createObjectStore("contents");
  });
  const database = await resultOf(request);
  return {
    load: () => resultOf<(FileRecord | FolderRecord)[]>(storeOf(database, "records").getAll()),
    read: (id) => resultOf<Uint8Array>(storeOf(database, "contents").get(id)),
    write({ records, contents, removed }) {
      const options = { durability: "strict" } as const;
      const transaction = database.transaction(["records", "contents"], "readwrite", options);
      const [recordStore, contentStore] = ["records", "contents"].map((store) =>
        transaction.objectStore(store),
      ) as [IDBObjectStore, IDBObjectStore];
      for (const record of records) recordStore.put(record);
      // A copy, because `put` would also store the rest of the buffer.
      for (const [id, bytes] of contents) contentStore.put(bytes.slice(), id);
      for (const id of removed) {
        recordStore.delete(id);
        contentStore.delete(id);
      }
      return new Promise((resolve, reject) => {
        transaction.addEventListener("complete", () => resolve());
        transaction.addEventListener("abort", () => reject(transaction.error ?? new Error("aborted")));
      });
    },
    close: () => database.close(),
  };
}

/** Deletes a database of files. Waits until no page uses it. */
export async function deleteIndexedDb(name: string): Promise<void> {
  await resultOf(indexedDB.deleteDatabase(name));
}

const storeOf = (database: IDBDatabase, name: string): IDBObjectStore =>
  database.transaction(name).objectStore(name);

const resultOf = <T>(request: IDBRequest<T>): Promise<T> =>
  new Promise((resolve, reject) => {
    request.addEventListener("success", () => resolve(request.result));
    request.addEventListener("error", () => reject(request.error ?? new Error("the request failed")));
  });
