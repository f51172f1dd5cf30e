/**
 * Makes xterm.js work under the content security policy `style-src 'self'`.
 *
 * xterm.js writes styles into `<style>` elements and, with its DOM renderer, into `style` attributes. The
 * policy blocks both, so they are redirected to what it allows: constructed style sheets and the `style`
 * property.
 */

/** Patches `createElement` for `<style>` and `<span>`. Call it once, before the first terminal. */
export function redirectStyles(page: Document = document): void {
  const create = page.createElement.bind(page);
  page.createElement = (name: string, options?: ElementCreationOptions) => {
    const element = create(name === "style" ? "template" : name, options);
    if (name === "style") return styleSheetElement(page, element);
    if (name === "span") element.setAttribute = setAttribute;
    return element;
  };
}

/** Replaces `Element.setAttribute`: sets `style` through the style property. */
function setAttribute(this: HTMLElement, name: string, value: string): void {
  if (name === "style") this.style.cssText = value;
  else Element.prototype.setAttribute.call(this, name, value);
}

/** Makes an element pass its text to a constructed style sheet. */
function styleSheetElement(page: Document, element: HTMLElement): HTMLElement {
  const sheet = new CSSStyleSheet();
  let text = "";
  Object.defineProperty(element, "textContent", {
    get: () => text,
    set(css: string) {
      text = css;
      sheet.replaceSync(css);
      if (!page.adoptedStyleSheets.includes(sheet)) page.adoptedStyleSheets.push(sheet);
    },
  });
  element.remove = () => {
    const at = page.adoptedStyleSheets.indexOf(sheet);
    if (at >= 0) page.adoptedStyleSheets.splice(at, 1);
    Element.prototype.remove.call(element);
  };
  return element;
}
