/** Runs in the page before anything else: lets the browser's processor, which plays a GPU here, pass for one. */
export function pretendGpu(): void {
  const real = HTMLCanvasElement.prototype.getContext as (
    this: HTMLCanvasElement,
    ...args: unknown[]
  ) => RenderingContext | null;
  HTMLCanvasElement.prototype.getContext = function (this: HTMLCanvasElement, kind: string, options?: object) {
    return real.call(this, kind, { ...options, failIfMajorPerformanceCaveat: false });
  } as typeof HTMLCanvasElement.prototype.getContext;
  const ask = WebGL2RenderingContext.prototype.getParameter;
  WebGL2RenderingContext.prototype.getParameter = function (name: number) {
    return name === this.RENDERER ? "a GPU" : (ask.call(this, name) as unknown);
  };
}
