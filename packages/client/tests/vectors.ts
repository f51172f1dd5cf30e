/** Reading the golden vectors in fixtures/, which the Rust code is held to as well. */
import { readFileSync } from "node:fs";

/** A vector file as JSON. */
export function load(name: string): any {
  return JSON.parse(readFileSync(new URL(`../../../fixtures/${name}`, import.meta.url), "utf8"));
}

/** Bytes as hex. */
export const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString("hex");
/** Bytes from hex. */
export const unhex = (text: string): Uint8Array => new Uint8Array(Buffer.from(text, "hex"));
/** The bytes of a vector, field by field. */
export const fields = (vector: any): Uint8Array => unhex(vector.fields.map((field: any) => field.hex).join(""));
