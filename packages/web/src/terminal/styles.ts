/**
 * xterm.js writes its styles into `<style>` elements, which a strict content security policy refuses. Here such an element is
 * replaced by one that does nothing but hand its text to a constructed style sheet, which the policy allows, so that
 * `style-src 'self'` holds for the whole app.
 */

/** Makes `<style>` elements that scripts create work under `style-src 'self'`. Once, before the first terminal. */
export function adoptStyles(page: Document = document): void {
  const create = page.createElement.bind(page);
  page.createElement = ((name: string, options?: ElementCreationOptions) => {
    return name.toLowerCase() === "style" ? adopted(page, create("template")) : create(name, options);
  }) as typeof page.createElement;
}

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
