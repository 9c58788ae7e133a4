/** The title of the conversation, which can be changed in place. */

import { useEffect, useRef, useState } from "preact/hooks";
import { sessions } from "./sessions.js";

export function Title({ sessionId }: { readonly sessionId: string | null }) {
  const [editing, setEditing] = useState(false);
  const field = useRef<HTMLInputElement>(null);
  const button = useRef<HTMLButtonElement>(null);
  const title = sessionId === null ? "New conversation" : sessions.titleOf(sessionId);

  useEffect(() => {
    document.title = `${title} – Trip planner`;
  }, [title]);
  useEffect(() => {
    if (editing) field.current?.select();
  }, [editing]);

  const close = () => {
    setEditing(false);
    // Drawn first: the button is not there yet.
    requestAnimationFrame(() => button.current?.focus());
  };
  const save = async () => {
    const text = field.current?.value ?? "";
    close();
    if (sessionId !== null && text.trim() !== title) {
      await sessions.rename(sessionId, text).catch(() => undefined);
    }
  };

  return (
    <header class="title">
      {editing ? (
        <form
          onSubmit={(event) => {
            event.preventDefault();
            void save();
          }}
        >
          <h2 id="title" class="unseen">
            {title}
          </h2>
          <input
            ref={field}
            type="text"
            aria-label="Title"
            maxLength={200}
            defaultValue={title}
            onKeyDown={(event) => event.key === "Escape" && close()}
          />
          <button type="submit" class="small">
            Save
          </button>
        </form>
      ) : (
        <>
          <h2 id="title" dir="auto">
            {title}
          </h2>
          {sessionId !== null && (
            <button ref={button} type="button" class="small quiet" onClick={() => setEditing(true)}>
              Rename
            </button>
          )}
        </>
      )}
    </header>
  );
}
