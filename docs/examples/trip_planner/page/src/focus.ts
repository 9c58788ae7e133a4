/** Where the keyboard is, and where it goes when what it was on disappears. */

export const COMPOSER = "message";
export const LOG = "conversation";

/** Whether nothing is lost when the focus moves: it is nowhere, or where nothing was begun. */
export function isFree(): boolean {
  const { activeElement: at } = document;
  if (at === null || at === document.body || at.id === LOG) return true;
  return at.id === COMPOSER && (at as HTMLTextAreaElement).value === "";
}

/** Goes to where one writes; on a touch screen that would open the keyboard, so beside it. */
export function goOn(): void {
  const id = matchMedia("(pointer: coarse)").matches ? LOG : COMPOSER;
  document.getElementById(id)?.focus({ preventScroll: true });
}
