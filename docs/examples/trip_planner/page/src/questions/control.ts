/** What the page expects of a control that asks one kind of question. */

import type { Interaction } from "@rungent/sdk";
import type { FunctionComponent } from "preact";

/** Why an answer was refused, and where: keys and indexes as the SDK gives them. */
export interface Refusal {
  readonly message: string;
  /** The reason code, where the runtime has one. */
  readonly reason?: string;
  readonly path: readonly (string | number)[];
}

/** The path of what went wrong with no part of the answer: no key, and no index. */
export const NOWHERE: Refusal["path"] = [-1];

export interface ControlProps {
  readonly asked: Interaction;
  /** The answer is on its way: nothing can be changed. */
  readonly busy: boolean;
  readonly refusal: Refusal | null;
  /** Checks the answer and sends it; a second call meanwhile does nothing. */
  readonly submit: (value: unknown) => void;
}

export type Control = FunctionComponent<ControlProps>;
