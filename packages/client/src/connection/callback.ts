/** Calling what users gave us. */

/** Calls it. What it throws is the runtime's to report, and never stops a connection. */
export function safely(call: () => void): void {
  try {
    call();
  } catch (error) {
    queueMicrotask(() => {
      throw error;
    });
  }
}
