/**
 * xterm.js writes its styles into `<style>` elements and, drawing by the DOM, into `style` attributes; a strict content security
 * policy refuses both. Here they take the ways that the policy allows: constructed style sheets, and the style object. So
 * `style-src 'self'` holds for the whole app.
 */

/** Makes styles that scripts write as markup work under `style-src 'self'`. Once, before the first terminal. */
export function adoptStyles(page: Document = document): void {
  const create = page.createElement.bind(page);
  page.createElement = (name: string, options?: ElementCreationOptions) => {
    const element = create(name === "style" ? "template" : name, options);
    if (name === "style") return adopted(page, element);
    if (name === "span") element.setAttribute = styled;
    return element;
  };
}

/** `setAttribute`, but for the style. */
function styled(this: HTMLElement, name: string, value: string): void {
  if (name === "style") this.style.cssText = value;
  else Element.prototype.setAttribute.call(this, name, value);
}

/** An element that hands its text to a style sheet. */
function adopted(page: Document, element: HTMLElement): HTMLElement {
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
