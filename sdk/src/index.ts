/** Headless client of Rungent: HTTP client, event decoder, pure reducer, answer checks. */

export {
  type ChoiceAnswer,
  checkAnswer,
  choiceAnswer,
  formAnswers,
  type NormalChoice,
  type NormalForm,
} from "./answers.js";
export {
  type CreateRunOptions,
  type Page,
  type PageOptions,
  type RespondOptions,
  RungentClient,
} from "./client.js";
export { EventDecoder, parseEvent, type StreamItem } from "./decode.js";
export {
  type AnswerReason,
  type ErrorDetail,
  RungentAnswerError,
  RungentApiError,
  RungentError,
  RungentStreamError,
} from "./errors.js";
export type { FollowOptions } from "./follow.js";
export { failRungentState, reduceRungentEvent } from "./reduce/reduce.js";
export type { HeadersSource, RungentClientOptions } from "./requests.js";
export { dataAnswer, type FieldDescription, schemaForm } from "./schemaForm.js";
export { SseDecoder, type SseFrame } from "./sse.js";
export {
  type ActivityRow,
  type ExternalRow,
  type Interaction,
  type InteractionKind,
  type InteractionRow,
  initialRungentState,
  isTerminal,
  type ModelRow,
  type ProgressRow,
  type RowStatus,
  type RungentState,
  type RunViewStatus,
  type ToolRow,
} from "./state.js";
export type * from "./types.js";
export { EVENT_TYPES } from "./types.js";
