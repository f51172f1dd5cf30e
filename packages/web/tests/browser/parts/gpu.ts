/** An init script that makes the browser's software renderer look like a GPU. */
export function pretendGpu(): void {
  const real = HTMLCanvasElement.prototype.getContext as (
    this: HTMLCanvasElement,
    ...args: unknown[]
  ) => RenderingContext | null;
  HTMLCanvasElement.prototype.getContext = function (this: HTMLCanvasElement, kind: string, options?: object) {
    return real.call(this, kind, { ...options, failIfMajorPerformanceCaveat: false });
  } as typeof HTMLCanvasElement.prototype.getContext;
  const getParameter = WebGL2RenderingContext.prototype.getParameter;
  WebGL2RenderingContext.prototype.getParameter = function (name: number) {
    return name === this.RENDERER ? "a GPU" : (getParameter.call(this, name) as unknown);
  };
}
