/** The title of the page, which says what is shown. A count of what needs the user may go before it. */
export const pageTitle = $state({ text: "Bowline" });
