/** Calls to functions that the user of this package provides. */

/** Calls a callback. An exception in it is left to the runtime to report as uncaught, and does not stop the connection. */
export function safely(call: () => void): void {
  try {
    call();
  } catch (error) {
    queueMicrotask(() => {
      throw error;
    });
  }
}
