/** An item of a menu. */
export interface MenuItem {
  readonly label: string;
  readonly onSelect: () => void;
  /** Whether it is destructive; shown in red. */
  readonly danger?: boolean;
  /** Its keyboard shortcut, as text. */
  readonly shortcut?: string;
}
