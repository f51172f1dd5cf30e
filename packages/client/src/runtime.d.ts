/**
 * The globals that code outside browser/ may use: those that every JavaScript runtime provides.
 *
 * Only tsconfig.core.json includes this file; users of the package get these types from the DOM or from Node.
 */

declare class TextEncoder {
  encode(text: string): Uint8Array<ArrayBuffer>;
}

declare class TextDecoder {
  constructor(label?: string, options?: { fatal?: boolean; ignoreBOM?: boolean });
  decode(bytes: Uint8Array): string;
}

declare class URL {
  constructor(url: string, base?: string);
  href: string;
  protocol: string;
  readonly hostname: string;
  pathname: string;
  search: string;
  hash: string;
  readonly searchParams: { set(name: string, value: string): void };
}

declare class AbortController {
  readonly signal: AbortSignal;
  abort(): void;
}

interface Blob {
  readonly size: number;
  readonly type: string;
}

interface AbortSignal {
  readonly aborted: boolean;
  addEventListener(type: "abort", listener: () => void): void;
  removeEventListener(type: "abort", listener: () => void): void;
}

declare function setTimeout(callback: () => void, ms: number): unknown;
declare function clearTimeout(timer: unknown): void;
declare const performance: { now(): number };
declare const crypto: { getRandomValues(bytes: Uint8Array): Uint8Array };
declare function queueMicrotask(callback: () => void): void;
