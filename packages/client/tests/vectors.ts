/** Loads the golden vectors in fixtures/, which the Rust code is tested with, too. */
import { readFileSync } from "node:fs";

export function load(name: string): any {
  return JSON.parse(readFileSync(new URL(`../../../fixtures/${name}`, import.meta.url), "utf8"));
}

export const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString("hex");
export const unhex = (text: string): Uint8Array => new Uint8Array(Buffer.from(text, "hex"));
/** Joins the fields of a vector. */
export const fields = (vector: any): Uint8Array => unhex(vector.fields.map((field: any) => field.hex).join(""));
