/** What the client has only in Node. */

export { FileStore } from "./file-store.js";
