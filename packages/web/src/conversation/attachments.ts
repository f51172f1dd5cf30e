/** What the ids of uploads tell: an id is 16 digits, a hyphen and the file's name, whose ending agrees with its type. */

/** The file's name, as far as the id has it. */
export function attachmentName(id: string): string {
  return id.replace(/^[0-9a-f]{16}-/, "");
}

/** Whether it is an image that browsers show. */
export function isPicture(id: string): boolean {
  return /\.(png|jpe?g|gif|webp)$/.test(id);
}
