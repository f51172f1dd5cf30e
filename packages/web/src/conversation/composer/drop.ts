/** Dropping files: anywhere on a conversation, they are attached to the message that is being written. */

/** What gets dropped files. */
export interface DropReceiver {
  /** Whether files are dragged over the conversation. */
  readonly drag: (over: boolean) => void;
  readonly drop: (files: readonly File[]) => void;
}

/** By their element. */
const receivers = new Map<Element, DropReceiver>();

/** Makes an element's receiver known to {@link dropFiles}. Use the result as an attachment. */
export function receiveDrops(receiver: DropReceiver): (element: Element) => () => void {
  return (element) => {
    receivers.set(element, receiver);
    return () => receivers.delete(element);
  };
}

/** Lets files be dropped onto an element, for the receiver in it. Use it as an attachment of the page. */
export function dropFiles(page: HTMLElement): () => void {
  const receiver = () => [...receivers].find(([element]) => page.contains(element))?.[1];
  const handleOver = (event: DragEvent) => {
    if (!hasFiles(event) || !receiver()) return;
    event.preventDefault();
    event.dataTransfer!.dropEffect = "copy";
    receiver()?.drag(true);
  };
  const handleLeave = (event: DragEvent) => {
    // Also reported when the pointer moves on to an element inside.
    if (!(event.relatedTarget instanceof Node && page.contains(event.relatedTarget))) receiver()?.drag(false);
  };
  const handleDrop = (event: DragEvent) => {
    receiver()?.drag(false);
    if (!hasFiles(event) || !receiver()) return;
    event.preventDefault();
    receiver()?.drop(filesOf(event.dataTransfer!));
  };
  page.addEventListener("dragover", handleOver);
  page.addEventListener("dragleave", handleLeave);
  page.addEventListener("drop", handleDrop);
  return () => {
    page.removeEventListener("dragover", handleOver);
    page.removeEventListener("dragleave", handleLeave);
    page.removeEventListener("drop", handleDrop);
  };
}

/** The files in what was pasted, if it is not a text: some programs add a picture of the text that they copy. */
export function pastedFiles(data: DataTransfer | null): readonly File[] {
  if (!data || data.types.includes("text/plain")) return [];
  return filesOf(data);
}

function hasFiles({ dataTransfer }: DragEvent): boolean {
  return dataTransfer?.types.includes("Files") ?? false;
}

/** The files of a transfer, without folders, which look like files but cannot be read. */
function filesOf({ items, files }: DataTransfer): File[] {
  const isFolder = [...items]
    .filter(({ kind }) => kind === "file")
    .map((item) => item.webkitGetAsEntry()?.isDirectory === true);
  return [...files].filter((_, i) => !isFolder[i]);
}
