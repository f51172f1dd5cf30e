/** The text of an item that the user can see, for searching. */
import { toolCommand, toolFiles, toolInput, toolParts } from "./tool.ts";
import { approvalText, endText, toolTitle } from "./text.ts";
import type { Item, ToolItem } from "./transcript.ts";

export function visibleText(item: Item): string {
  switch (item.kind) {
    case "prompt":
    case "text":
    case "thinking":
    case "steer":
    case "notice":
      return item.text;
    case "tool":
      return toolText(item);
    case "approval":
      return `${approvalText(item)}\n${item.approval?.title ?? ""}\n${item.approval?.detail.command ?? ""}`;
    case "end":
      return endText(item);
    case "plan":
      return item.steps.map(({ text }) => text).join("\n");
    case "setting":
    case "life":
      return "";
  }
}

/** Without what its sub-agent did, which are items of their own. */
function toolText(item: ToolItem): string {
  const parts = toolParts(item.content).map((part) => {
    switch (part.kind) {
      case "text":
        return part.text;
      case "diff":
        return `${part.path}\n${part.diff}`;
      case "change":
        return `${part.path}\n${part.before ?? ""}\n${part.after ?? ""}`;
      case "other":
        return part.json;
    }
  });
  const files = toolFiles(item.locations);
  return [toolTitle(item), toolCommand(item.input) ?? "", toolInput(item.input, ["command"]), ...files, ...parts].join(
    "\n",
  );
}
