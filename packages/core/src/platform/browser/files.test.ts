import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { temporaryFolder } from "../../testing/temporary-folder.test-data.ts";
import * as node from "../node.ts";
import * as browser from "../browser.ts";
import { FileTree } from "./file-tree.ts";
import type { Changes, FileRecord, FolderRecord, Storage } from "./storage.ts";
