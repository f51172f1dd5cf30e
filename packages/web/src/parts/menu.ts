/** What a menu offers. */
export interface MenuItem {
  readonly label: string;
  readonly act: () => void;
  readonly danger?: boolean;
  readonly keys?: string;
}
