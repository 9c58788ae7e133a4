/** The conversations, last used first. */

import { useObserved } from "./observable.js";
import { sessions } from "./sessions.js";

/** The address of a conversation that has not begun. */
export const NEW = "new";

interface SessionListProps {
  readonly current: string | null;
  readonly onChosen: () => void;
}

export function SessionList({ current, onChosen }: SessionListProps) {
  useObserved(sessions);
  return (
    <nav class="sessions" aria-label="Conversations">
      <h2>Conversations</h2>
      <a
        class="new"
        href={`#${NEW}`}
        onClick={onChosen}
        aria-current={current === null ? "page" : undefined}
      >
        New conversation
      </a>
      {sessions.items?.length === 0 && <p class="empty">None so far.</p>}
      <ul>
        {sessions.items?.map(({ id, title, updated_at }) => (
          <li key={id}>
            <a
              href={`#${id}`}
              onClick={onChosen}
              aria-current={id === current ? "page" : undefined}
              dir="auto"
            >
              <span class="session-title">{title ?? "Untitled conversation"}</span>
              <time dateTime={updated_at}>{when(updated_at)}</time>
            </a>
          </li>
        ))}
      </ul>
      {sessions.more && (
        <button type="button" class="small quiet" onClick={() => void sessions.showMore()}>
          Show older ones
        </button>
      )}
    </nav>
  );
}

function when(text: string): string {
  const then = new Date(text);
  const today = new Date().toDateString() === then.toDateString();
  return today
    ? then.toLocaleTimeString(undefined, { hour: "2-digit", minute: "2-digit" })
    : then.toLocaleDateString(undefined, { day: "numeric", month: "short" });
}
